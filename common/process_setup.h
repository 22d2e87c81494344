#ifndef ATOLL_COMMON_PROCESS_SETUP_H_
#define ATOLL_COMMON_PROCESS_SETUP_H_

#include <cstddef>

namespace atl {

/// What every program needs of its process, before anything else in main.
///
/// Standard descriptors that are closed are opened on /dev/null: else the next file of the program, its lock
/// perhaps, gets their number, and the log goes into it. Writing to a standard output that was closed fails
/// as before, so that a lost answer can be told.
///
/// SIGXFSZ is ignored, also by children: a file that meets the limit of file sizes (ulimit -f) is then an
/// error of the write, EFBIG, and not the end of the process.
void SetUpProcess();

/// Raises the limit of open files of this process as far as it may, and returns it.
size_t RaiseFileLimit();

}  // namespace atl

#endif  // ATOLL_COMMON_PROCESS_SETUP_H_

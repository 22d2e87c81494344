#ifndef ATOLL_COMMON_PROCESS_SETUP_H_
#define ATOLL_COMMON_PROCESS_SETUP_H_

#include <cstddef>

namespace atl {

/// Prepares the process. Call it first in main, in every program.
///
/// Opens closed standard descriptors on /dev/null. Otherwise the next opened file, perhaps the lock, would
/// get their number and the log would be written into it. Writing to a closed standard output still fails, so
/// that a lost answer can be reported.
///
/// Ignores SIGXFSZ, also in children: exceeding the limit of file sizes (ulimit -f) is then a write error,
/// EFBIG, instead of ending the process. Sets SIGCHLD to its default: a parent may have left it ignored, and
/// then nobody learns how a child ended.
void SetUpProcess();

/// Raises this process's limit of open files as far as allowed and returns it.
size_t RaiseFileLimit();

}  // namespace atl

#endif  // ATOLL_COMMON_PROCESS_SETUP_H_

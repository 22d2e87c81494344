#ifndef ATOLL_SERVER_LAUNCH_LAST_ERROR_H_
#define ATOLL_SERVER_LAUNCH_LAST_ERROR_H_

#include <cstdint>
#include <string>

namespace atl {

/// The message of the last line of an error that a program has written to its log (common/log.h, in text or
/// JSON) from byte `from` on, with its fields where the log is text. Printable, at most 400 bytes. Empty:
/// there is none in the last 16 KiB, or the log cannot be read.
std::string LastError(const std::string& log, uint64_t from);

}  // namespace atl

#endif  // ATOLL_SERVER_LAUNCH_LAST_ERROR_H_

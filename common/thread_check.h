#ifndef ATOLL_COMMON_THREAD_CHECK_H_
#define ATOLL_COMMON_THREAD_CHECK_H_

#include <cstddef>
#include <system_error>

#include "absl/status/status.h"

namespace atl {

/// Checks that this process can have this many more threads, by starting and joining them. ResourceExhausted
/// names the limits. Call it at the start of a program, because libraries end the process if they cannot
/// start a thread.
absl::Status CheckThreads(size_t count);

/// Converts the exception of std::thread to ResourceExhausted.
absl::Status NoThread(const std::system_error& error);

}  // namespace atl

#endif  // ATOLL_COMMON_THREAD_CHECK_H_

#ifndef ATOLL_COMMON_THREAD_CHECK_H_
#define ATOLL_COMMON_THREAD_CHECK_H_

#include <cstddef>
#include <system_error>

#include "absl/status/status.h"

namespace atl {

/// Whether this process may have so many more threads: starts them all and joins them. ResourceExhausted that
/// names the limits. For the start of a program, because libraries end the process when they get no thread.
absl::Status CheckThreads(size_t count);

/// What std::thread threw, as ResourceExhausted.
absl::Status NoThread(const std::system_error& error);

}  // namespace atl

#endif  // ATOLL_COMMON_THREAD_CHECK_H_

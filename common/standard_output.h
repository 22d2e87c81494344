#ifndef ATOLL_COMMON_STANDARD_OUTPUT_H_
#define ATOLL_COMMON_STANDARD_OUTPUT_H_

#include "absl/status/status.h"

namespace atl {

/// Flushes stdout and std::cout. ResourceExhausted if not everything could be written (a full disk), now or
/// earlier. OK if the reader went away, because it needs no more.
absl::Status FlushStandardOutput();

}  // namespace atl

#endif  // ATOLL_COMMON_STANDARD_OUTPUT_H_

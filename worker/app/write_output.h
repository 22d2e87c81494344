#ifndef ATOLL_WORKER_APP_WRITE_OUTPUT_H_
#define ATOLL_WORKER_APP_WRITE_OUTPUT_H_

#include <cstdio>
#include <string_view>

#include "absl/status/status.h"

namespace atl {

/// Writes the whole text, zero bytes included, and flushes. ResourceExhausted when `out` does not take
/// everything. A pipe whose reader has gone away is no error.
absl::Status WriteOutput(std::string_view text, std::FILE* out);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_WRITE_OUTPUT_H_

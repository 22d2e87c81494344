#ifndef ATOLL_WORKER_APP_EVAL_LINE_ERROR_H_
#define ATOLL_WORKER_APP_EVAL_LINE_ERROR_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace atl {

/// InvalidArgument: "FILE, line N: WHAT".
inline absl::Status LineError(std::string_view path, size_t line, std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s, line %d: %s", std::string(path), line, std::string(what)));
}

}  // namespace atl

#endif  // ATOLL_WORKER_APP_EVAL_LINE_ERROR_H_

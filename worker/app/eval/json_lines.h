#ifndef ATOLL_WORKER_APP_EVAL_JSON_LINES_H_
#define ATOLL_WORKER_APP_EVAL_JSON_LINES_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

// Files with one JSON object in each line. For source files only: nlohmann::json shows.

namespace atl {

/// Calls take(object, line) for each line that is not blank, until `most` objects were taken (0: all). Errors
/// name the file and the line: a line is no JSON object, or `take` rejects it with a text that continues
/// "FILE, line N: ...".
absl::Status ReadJsonLines(const std::string& path, size_t most,
                           const std::function<absl::Status(const nlohmann::json&)>& take);

/// A member that is a text. InvalidArgument names it when it is missing or something else.
absl::StatusOr<std::string> TextOf(const nlohmann::json& object, std::string_view name);

/// A member that is a list of texts, at least two of them.
absl::StatusOr<std::vector<std::string>> TextsOf(const nlohmann::json& object, std::string_view name);

/// A member that is the index of one of `count` answers, as a number or as digits in a text; with `letters`
/// also as A, B, and so on.
enum class AnswerForm { kIndex, kIndexOrLetter };
absl::StatusOr<size_t> AnswerOf(const nlohmann::json& object, std::string_view name, size_t count,
                                AnswerForm form);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_EVAL_JSON_LINES_H_

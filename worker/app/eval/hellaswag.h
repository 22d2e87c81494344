#ifndef ATOLL_WORKER_APP_EVAL_HELLASWAG_H_
#define ATOLL_WORKER_APP_EVAL_HELLASWAG_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/app/eval/choice.h"

namespace atl {

/// The questions of a HellaSwag file (Zellers et al., arXiv 1905.07830; hellaswag_val.jsonl), at most `most`
/// of them (0: all), in the form of lm-evaluation-harness: "activity: context" and the endings, without the
/// bracketed remarks of its source. Errors name the file and the line.
absl::StatusOr<std::vector<ChoiceQuestion>> ReadHellaSwag(const std::string& path, size_t most);

/// A text without those remarks.
std::string WithoutBrackets(std::string_view text);

/// First letter large and all others small, as Python's str.capitalize; of the letters of ASCII, others stay.
std::string Capitalized(std::string_view text);

/// Characters, not bytes, of a text in UTF-8.
double CharactersIn(std::string_view text);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_EVAL_HELLASWAG_H_

#include "worker/app/eval/eval_inputs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "common/status.h"

namespace atl {
absl::StatusOr<EvalInputs> ReadInputs(const EvalFlags& flags) {
  EvalInputs inputs;
  for (const std::string& path : flags.texts) {
    ATOLL_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
    if (text.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": is empty"));
    inputs.texts.push_back({.file = path, .text = std::move(text)});
  }
  const ChoiceReading reading = {.most = flags.limit, .shots = flags.shots, .examples = flags.mmlu_examples};
  const auto add = [&](const char* task, const std::vector<std::string>& paths) -> absl::Status {
    for (const std::string& path : paths) {
      ATOLL_ASSIGN_OR_RETURN(ChoiceInput input, ReadChoiceInput(task, path, reading));
      inputs.choices.push_back(std::move(input));
    }
    return absl::OkStatus();
  };
  ATOLL_RETURN_IF_ERROR(add("choices", flags.choices));
  ATOLL_RETURN_IF_ERROR(add("hellaswag", flags.hellaswag));
  ATOLL_RETURN_IF_ERROR(add("mmlu", flags.mmlu));
  return inputs;
}

}  // namespace atl

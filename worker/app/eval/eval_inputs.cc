#include "worker/app/eval/eval_inputs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "common/status.h"
#include "worker/app/eval/choice_file.h"
#include "worker/app/eval/hellaswag.h"
#include "worker/app/eval/mmlu.h"

namespace atl {
namespace {

absl::StatusOr<ChoiceInput> MmluInput(const EvalFlags& flags, const std::string& path) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<MmluQuestion> questions, ReadMmlu(path, flags.limit));
  std::vector<MmluQuestion> examples;
  if (flags.shots > 0) {
    ATOLL_ASSIGN_OR_RETURN(examples, ReadMmlu(flags.mmlu_examples, 0));
  }
  ChoicePart letters = {.key = "", .of = " of letters", .by_length = false};
  ATOLL_ASSIGN_OR_RETURN(letters.text, MmluChoices(questions, examples, flags.shots, MmluForm::kLetter));
  ChoicePart answers = {.key = "answers_", .of = " of answers"};
  ATOLL_ASSIGN_OR_RETURN(answers.text, MmluChoices(questions, examples, flags.shots, MmluForm::kAnswer));
  ChoiceInput input = {.task = "mmlu", .file = path};
  input.parts.push_back(std::move(letters));
  input.parts.push_back(std::move(answers));
  return input;
}

}  // namespace

absl::StatusOr<EvalInputs> ReadInputs(const EvalFlags& flags) {
  EvalInputs inputs;
  for (const std::string& path : flags.texts) {
    ATOLL_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
    if (text.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": is empty"));
    inputs.texts.push_back({.file = path, .text = std::move(text)});
  }
  for (const std::string& path : flags.choices) {
    ChoiceInput input = {.task = "choices", .file = path, .parts = std::vector<ChoicePart>(1)};
    ATOLL_ASSIGN_OR_RETURN(input.parts[0].tokens, ReadChoiceFile(path, flags.limit));
    inputs.choices.push_back(std::move(input));
  }
  for (const std::string& path : flags.hellaswag) {
    ChoiceInput input = {.task = "hellaswag", .file = path, .parts = std::vector<ChoicePart>(1)};
    ATOLL_ASSIGN_OR_RETURN(input.parts[0].text, ReadHellaSwag(path, flags.limit));
    inputs.choices.push_back(std::move(input));
  }
  for (const std::string& path : flags.mmlu) {
    ATOLL_ASSIGN_OR_RETURN(ChoiceInput input, MmluInput(flags, path));
    inputs.choices.push_back(std::move(input));
  }
  return inputs;
}

}  // namespace atl

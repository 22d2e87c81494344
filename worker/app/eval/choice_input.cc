#include "worker/app/eval/choice_input.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/app/eval/choice_file.h"
#include "worker/app/eval/choice_scores.h"
#include "worker/app/eval/hellaswag.h"
#include "worker/app/eval/mmlu.h"

namespace atl {
namespace {

absl::StatusOr<std::vector<ChoicePart>> MmluParts(const std::string& path, const ChoiceReading& reading) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<MmluQuestion> questions, ReadMmlu(path, reading.most));
  std::vector<MmluQuestion> examples;
  if (reading.shots > 0) {
    ATOLL_ASSIGN_OR_RETURN(examples, ReadMmlu(reading.examples, 0));
  }
  std::vector<ChoicePart> parts = {{.key = "", .of = " of letters", .by_length = false},
                                   {.key = "answers_", .of = " of answers"}};
  ATOLL_ASSIGN_OR_RETURN(parts[0].text, MmluChoices(questions, examples, reading.shots, MmluForm::kLetter));
  ATOLL_ASSIGN_OR_RETURN(parts[1].text, MmluChoices(questions, examples, reading.shots, MmluForm::kAnswer));
  return parts;
}

}  // namespace

absl::StatusOr<ChoiceInput> ReadChoiceInput(std::string_view task, const std::string& path,
                                            const ChoiceReading& reading) {
  ChoiceInput input = {.task = std::string(task), .file = path};
  if (task == "mmlu") {
    ATOLL_ASSIGN_OR_RETURN(input.parts, MmluParts(path, reading));
    return input;
  }
  ChoicePart& part = input.parts.emplace_back();
  if (task == "hellaswag") {
    ATOLL_ASSIGN_OR_RETURN(part.text, ReadHellaSwag(path, reading.most));
  } else if (task == "choices") {
    ATOLL_ASSIGN_OR_RETURN(part.tokens, ReadChoiceFile(path, reading.most));
  } else {
    return absl::InvalidArgumentError(absl::StrCat("'", std::string(task), "' is no task"));
  }
  return input;
}

bool NeedsTokenizer(const ChoiceInput& input) {
  return std::ranges::any_of(input.parts, [](const ChoicePart& part) { return !part.text.empty(); });
}

void TurnIntoTokens(const Tokenizer* tokenizer, std::optional<TokenId> begin, ChoiceInput& input) {
  for (ChoicePart& part : input.parts) {
    for (const ChoiceQuestion& question : part.text) {
      part.tokens.push_back(EncodeQuestion(*tokenizer, question));
    }
    part.text.clear();
    part.text.shrink_to_fit();
    if (!begin) continue;
    for (ChoiceTokens& question : part.tokens) question.context.insert(question.context.begin(), *begin);
  }
}

}  // namespace atl

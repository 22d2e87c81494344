#include "worker/app/eval/hellaswag.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "common/status.h"
#include "worker/app/eval/json_lines.h"

namespace atl {
namespace {

absl::StatusOr<ChoiceQuestion> QuestionOf(const nlohmann::json& object) {
  ATOLL_ASSIGN_OR_RETURN(const std::string activity, TextOf(object, "activity_label"));
  ATOLL_ASSIGN_OR_RETURN(const std::string first, TextOf(object, "ctx_a"));
  ATOLL_ASSIGN_OR_RETURN(const std::string second, TextOf(object, "ctx_b"));
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> endings, TextsOf(object, "endings"));
  ChoiceQuestion question;
  ATOLL_ASSIGN_OR_RETURN(question.right, AnswerOf(object, "label", endings.size(), AnswerForm::kIndex));
  question.context = WithoutBrackets(absl::StrCat(activity, ": ", first, " ", Capitalized(second)));
  for (const std::string& ending : endings) {
    const std::string answer = WithoutBrackets(ending);
    if (answer.empty()) return absl::InvalidArgumentError("an ending is empty");
    question.lengths.push_back(CharactersIn(answer));
    question.answers.push_back(" " + answer);
  }
  return question;
}

}  // namespace

std::string WithoutBrackets(std::string_view text) {
  const absl::string_view stripped = absl::StripAsciiWhitespace(absl::string_view(text.data(), text.size()));
  std::string rest = absl::StrReplaceAll(stripped, {{" [title]", ". "}});
  std::string kept;
  for (size_t at = 0; at < rest.size();) {
    const size_t open = rest.find('[', at);
    const size_t close = open == std::string::npos ? open : rest.find_first_of("]\n", open);
    if (close == std::string::npos || rest[close] == '\n') {
      // A bracket that is not closed in its line stays.
      const size_t end = open == std::string::npos ? rest.size() : open + 1;
      kept.append(rest, at, end - at);
      at = end;
      continue;
    }
    kept.append(rest, at, open - at);
    at = close + 1;
  }
  // Each pair once, from the left, as Python's replace.
  return absl::StrReplaceAll(kept, {{"  ", " "}});
}

std::string Capitalized(std::string_view text) {
  std::string result = absl::AsciiStrToLower(absl::string_view(text.data(), text.size()));
  if (!result.empty()) result[0] = absl::ascii_toupper(static_cast<unsigned char>(result[0]));
  return result;
}

double CharactersIn(std::string_view text) {
  return static_cast<double>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

absl::StatusOr<std::vector<ChoiceQuestion>> ReadHellaSwag(const std::string& path, size_t most) {
  std::vector<ChoiceQuestion> questions;
  ATOLL_RETURN_IF_ERROR(ReadJsonLines(path, most, [&](const nlohmann::json& object) {
    ATOLL_ASSIGN_OR_RETURN(ChoiceQuestion question, QuestionOf(object));
    questions.push_back(std::move(question));
    return absl::OkStatus();
  }));
  return questions;
}

}  // namespace atl

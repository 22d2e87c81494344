#include "worker/app/eval/mmlu.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "common/file.h"
#include "common/status.h"
#include "worker/app/eval/csv.h"
#include "worker/app/eval/hellaswag.h"
#include "worker/app/eval/is_folder.h"
#include "worker/app/eval/json_lines.h"
#include "worker/app/eval/line_error.h"

namespace atl {
namespace {

constexpr size_t kMostAnswers = 26;  // letters

std::string Letter(size_t answer) { return {static_cast<char>('A' + answer)}; }

std::string SubjectOfFile(std::string_view path) {
  path.remove_prefix(std::min(path.size(), path.rfind('/') + 1));  // npos + 1 is 0
  path = path.substr(0, path.rfind('.'));
  for (const std::string_view end : {"_test", "_val", "_dev"}) {
    if (path.ends_with(end)) path.remove_suffix(end.size());
  }
  return std::string(path);
}

absl::StatusOr<MmluQuestion> QuestionOf(const std::string& path, CsvRow row) {
  const size_t fields = row.fields.size();
  if (fields < 4 || fields - 2 > kMostAnswers) {
    return LineError(
        path, row.line,
        absl::StrFormat("has %d fields; a row is the question, its answers and the right letter", fields));
  }
  const std::string letter = row.fields.back();
  MmluQuestion question = {.subject = SubjectOfFile(path), .question = row.fields[0]};
  question.answers.assign(row.fields.begin() + 1, row.fields.end() - 1);
  if (letter.size() != 1 || letter[0] < 'A' ||
      static_cast<size_t>(letter[0] - 'A') >= question.answers.size()) {
    return LineError(path, row.line,
                     absl::StrFormat("its last field is '%s', which is no letter from A to %s%s", letter,
                                     Letter(question.answers.size() - 1),
                                     row.line == 1 ? "; a heading is not part of the form" : ""));
  }
  question.right = static_cast<size_t>(letter[0] - 'A');
  return question;
}

absl::StatusOr<MmluQuestion> QuestionOf(const std::string& path, const nlohmann::json& object) {
  MmluQuestion question = {.subject = SubjectOfFile(path)};
  if (object.contains("subject")) {
    ATOLL_ASSIGN_OR_RETURN(question.subject, TextOf(object, "subject"));
  }
  ATOLL_ASSIGN_OR_RETURN(question.question, TextOf(object, "question"));
  ATOLL_ASSIGN_OR_RETURN(question.answers, TextsOf(object, "choices"));
  if (question.answers.size() > kMostAnswers) return absl::InvalidArgumentError("has more than 26 choices");
  ATOLL_ASSIGN_OR_RETURN(question.right,
                         AnswerOf(object, "answer", question.answers.size(), AnswerForm::kIndexOrLetter));
  return question;
}

absl::Status AddCsv(const std::string& path, size_t most, std::vector<MmluQuestion>& questions) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ATOLL_ASSIGN_OR_RETURN(std::vector<CsvRow> rows, ParseCsv(path, text));
  if (rows.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": holds no question"));
  for (size_t i = 0; i < rows.size() && (most == 0 || i < most); ++i) {
    ATOLL_ASSIGN_OR_RETURN(MmluQuestion question, QuestionOf(path, std::move(rows[i])));
    questions.push_back(std::move(question));
  }
  return absl::OkStatus();
}

absl::Status AddFile(const std::string& path, size_t most, std::vector<MmluQuestion>& questions) {
  if (path.ends_with(".csv")) return AddCsv(path, most, questions);
  return ReadJsonLines(path, most, [&](const nlohmann::json& object) {
    ATOLL_ASSIGN_OR_RETURN(MmluQuestion question, QuestionOf(path, object));
    questions.push_back(std::move(question));
    return absl::OkStatus();
  });
}

std::string Asked(const MmluQuestion& question, MmluForm form) {
  const std::string text(absl::StripAsciiWhitespace(question.question));
  if (form == MmluForm::kAnswer) return absl::StrCat("Question: ", text, "\nAnswer:");
  std::string asked = text;
  for (size_t i = 0; i < question.answers.size(); ++i) {
    absl::StrAppend(&asked, "\n", Letter(i), ". ", question.answers[i]);
  }
  return absl::StrCat(asked, "\nAnswer:");
}

std::string Answered(const MmluQuestion& question, size_t answer, MmluForm form) {
  return form == MmluForm::kLetter ? Letter(answer) : question.answers[answer];
}

/// What stands before the questions of a subject.
absl::StatusOr<std::string> Preface(const std::string& subject, std::span<const MmluQuestion> examples,
                                    size_t shots, MmluForm form) {
  std::string preface = absl::StrCat(form == MmluForm::kLetter
                                         ? "The following are multiple choice questions (with answers) about "
                                         : "The following are questions (with answers) about ",
                                     absl::StrReplaceAll(subject, {{"_", " "}}), ".\n\n");
  size_t found = 0;
  for (const MmluQuestion& example : examples) {
    if (found == shots) break;
    if (example.subject != subject) continue;
    absl::StrAppend(&preface, Asked(example, form), " ", Answered(example, example.right, form), "\n\n");
    ++found;
  }
  if (found == shots) return preface;
  return absl::InvalidArgumentError(absl::StrFormat(
      "--shots %d: the examples of --mmlu-examples have %d of the subject '%s'", shots, found, subject));
}

}  // namespace

absl::StatusOr<std::vector<MmluQuestion>> ReadMmlu(const std::string& path, size_t most) {
  std::vector<MmluQuestion> questions;
  if (!IsFolder(path)) {
    ATOLL_RETURN_IF_ERROR(AddFile(path, most, questions));
    return questions;
  }
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDir(path));
  for (const std::string& name : names) {
    if (!name.ends_with(".csv") && !name.ends_with(".jsonl")) continue;
    ATOLL_RETURN_IF_ERROR(AddFile(JoinPath(path, name), most, questions));
  }
  if (!questions.empty()) return questions;
  return absl::InvalidArgumentError(absl::StrCat(
      "folder ", path, " has no .csv or .jsonl file; name the folder of the questions, such as data/test"));
}

absl::StatusOr<std::vector<ChoiceQuestion>> MmluChoices(std::span<const MmluQuestion> questions,
                                                        std::span<const MmluQuestion> examples, size_t shots,
                                                        MmluForm form) {
  std::map<std::string, std::string> prefaces;
  std::vector<ChoiceQuestion> choices;
  for (const MmluQuestion& question : questions) {
    auto preface = prefaces.find(question.subject);
    if (preface == prefaces.end()) {
      ATOLL_ASSIGN_OR_RETURN(std::string text, Preface(question.subject, examples, shots, form));
      preface = prefaces.emplace(question.subject, std::move(text)).first;
    }
    ChoiceQuestion& choice = choices.emplace_back();
    choice.context = preface->second + Asked(question, form);
    for (size_t i = 0; i < question.answers.size(); ++i) {
      const std::string answer = Answered(question, i, form);
      choice.answers.push_back(" " + answer);
      choice.lengths.push_back(std::max(1.0, CharactersIn(answer)));
    }
    choice.right = question.right;
    choice.subject = question.subject;
  }
  return choices;
}

}  // namespace atl

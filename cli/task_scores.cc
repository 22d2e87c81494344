#include "cli/task_scores.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/printable.h"

namespace atl {
namespace {

std::string ValueText(const v1::TaskScore& score) {
  std::string text = absl::StrFormat("%s %.4f", Printable(score.metric()), score.value());
  if (score.standard_error() > 0) absl::StrAppend(&text, absl::StrFormat(" ±%.4f", score.standard_error()));
  return text;
}

}  // namespace

const v1::EvaluationReport* NewestScored(const v1::GetStatusReply& status) {
  for (int i = status.evaluations_size() - 1; i >= 0; --i) {
    if (!status.evaluations(i).tasks().empty()) return &status.evaluations(i);
  }
  return nullptr;
}

std::vector<std::string> TaskScoreTexts(const v1::EvaluationReport& evaluation) {
  std::vector<std::string> texts;
  for (const v1::TaskScore& score : evaluation.tasks()) {
    texts.push_back(absl::StrCat(Printable(score.task()), " ", ValueText(score)));
  }
  return texts;
}

std::string TaskScoresLine(const v1::GetStatusReply& status) {
  const v1::EvaluationReport* const newest = NewestScored(status);
  if (newest == nullptr) return "";
  std::string line, task;
  for (const v1::TaskScore& score : newest->tasks()) {
    if (!line.empty()) absl::StrAppend(&line, ", ");
    if (score.task() != task) absl::StrAppend(&line, Printable(score.task()), " ");
    task = score.task();
    absl::StrAppend(&line, ValueText(score));
  }
  return absl::StrFormat("%s at version %d", line, newest->version());
}

}  // namespace atl

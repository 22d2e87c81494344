#include "server/run/task_score_check.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace atl {
namespace {

bool IsMetricName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxMetricBytes && std::ranges::all_of(name, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return absl::ascii_islower(byte) || absl::ascii_isdigit(byte) || c == '_';
  });
}

/// False for a value that is not a number, too.
bool IsShare(double value) { return value >= 0 && value <= 1; }

}  // namespace

absl::Status CheckTaskScore(const TaskScore& score, std::span<const std::string> tasks) {
  if (std::ranges::find(tasks, score.task) == tasks.end()) {
    return absl::InvalidArgumentError(
        tasks.empty() ? "evaluation.tasks names no task"
                      : absl::StrCat("its task is none of evaluation.tasks: ", absl::StrJoin(tasks, ", ")));
  }
  if (!IsMetricName(score.metric)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the name of a metric of '%s' is not 1 to %d characters of a-z, 0-9 and _",
                        score.task, kMaxMetricBytes));
  }
  const std::string name = absl::StrCat(score.task, " ", score.metric);
  if (!IsShare(score.value)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is %g; a share of questions is 0 to 1", name, score.value));
  }
  if (!IsShare(score.standard_error)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the standard error of %s is %g; one of a share is 0 to 1", name, score.standard_error));
  }
  if (score.questions == 0 || score.questions > kMaxTaskQuestions) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is of %d questions; allowed: 1 to %d", name, score.questions, kMaxTaskQuestions));
  }
  return absl::OkStatus();
}

std::string TaskScoreText(const TaskScore& score) {
  std::string text = absl::StrFormat("%s %s %.4f", score.task, score.metric, score.value);
  if (score.standard_error > 0) absl::StrAppend(&text, absl::StrFormat(" ±%.4f", score.standard_error));
  return text;
}

}  // namespace atl

#include "worker/app/eval/choice_task.h"

#include <map>
#include <string>
#include <vector>

#include "common/status.h"
#include "worker/app/eval/choice_scores.h"

namespace atl {
namespace {

struct Count {
  size_t all = 0;
  size_t right = 0;
  size_t by_length = 0;
};

void AddMeasures(const ChoicePart& part, const Count& count, std::vector<Measure>& measures) {
  const Accuracy sum = AccuracyOf(count.right, count.all), length = AccuracyOf(count.by_length, count.all);
  measures.push_back(
      {.key = part.key + "acc", .label = "accuracy" + part.of, .value = sum.share, .error = sum.error});
  if (!part.by_length) return;
  measures.push_back({.key = part.key + "acc_norm",
                      .label = "accuracy" + part.of + " by length",
                      .value = length.share,
                      .error = length.error});
}

absl::Status AddPart(const ChoicePart& part, const Scorer& scorer, const ChoiceProgress& progress,
                     TaskResult& result) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<ChoiceOutcome> scored,
                         ScoreChoices(part.tokens, scorer, [&](uint64_t done) { progress(part, done); }));
  Count total;
  std::map<std::string, Count> by_subject;
  for (size_t i = 0; i < scored.size(); ++i) {
    for (Count* const count : {&total, &by_subject[part.tokens[i].subject]}) {
      ++count->all;
      if (scored[i].right) ++count->right;
      if (scored[i].right_by_length) ++count->by_length;
    }
  }
  result.count = scored.size();
  AddMeasures(part, total, result.measures);
  for (const auto& [subject, count] : by_subject) {
    if (!subject.empty()) AddMeasures(part, count, result.subjects[subject]);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TaskResult> ScoreChoiceInput(const ChoiceInput& input, const Scorer& scorer,
                                            const ChoiceProgress& progress) {
  TaskResult result = {.task = input.task, .file = input.file, .unit = "questions"};
  for (const ChoicePart& part : input.parts) {
    ATOLL_RETURN_IF_ERROR(AddPart(part, scorer, progress, result));
  }
  return result;
}

}  // namespace atl

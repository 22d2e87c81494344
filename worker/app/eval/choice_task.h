#ifndef ATOLL_WORKER_APP_EVAL_CHOICE_TASK_H_
#define ATOLL_WORKER_APP_EVAL_CHOICE_TASK_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "worker/app/eval/choice_input.h"
#include "worker/app/eval/report.h"
#include "worker/app/eval/scorer.h"

namespace atl {

/// Hears how many questions of a part are done; at its end, all of them.
using ChoiceProgress = std::function<void(const ChoicePart& part, uint64_t done)>;

/// Scores the questions of a file with a model, all of which are in tokens: accuracies with their standard
/// errors, of each subject too. Errors are those of ScoreChoices.
absl::StatusOr<TaskResult> ScoreChoiceInput(const ChoiceInput& input, const Scorer& scorer,
                                            const ChoiceProgress& progress);

}  // namespace atl

#endif  // ATOLL_WORKER_APP_EVAL_CHOICE_TASK_H_

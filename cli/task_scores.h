#ifndef ATOLL_CLI_TASK_SCORES_H_
#define ATOLL_CLI_TASK_SCORES_H_

#include <string>
#include <vector>

#include "atoll/v1/admin.pb.h"

namespace atl {

/// The newest evaluation that has scores of tasks; null: there is none.
const v1::EvaluationReport* NewestScored(const v1::GetStatusReply& status);

/// "hellaswag acc 0.3125 ±0.0046", one for each metric of that evaluation.
std::vector<std::string> TaskScoreTexts(const v1::EvaluationReport& evaluation);

/// All of them in one line: "hellaswag acc 0.3125 ±0.0046, acc_norm 0.3500 ±0.0048 at version 40"; empty
/// without scores.
std::string TaskScoresLine(const v1::GetStatusReply& status);

}  // namespace atl

#endif  // ATOLL_CLI_TASK_SCORES_H_

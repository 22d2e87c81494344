#ifndef ATOLL_PROTOS_CONFIG_CHECK_EVALUATION_H_
#define ATOLL_PROTOS_CONFIG_CHECK_EVALUATION_H_

#include <string>
#include <vector>

#include "atoll/v1/run.pb.h"
#include "protos/config/problem.h"

namespace atl {

/// evaluation.tasks as a list: "hellaswag, mmlu" has two names. Names between two commas may be empty.
std::vector<std::string> TaskNames(const std::string& text);

/// The rules of evaluation.tasks: known names, each once, and a model that can score text.
std::vector<ConfigProblem> CheckEvaluation(const v1::RunConfig& config);

}  // namespace atl

#endif  // ATOLL_PROTOS_CONFIG_CHECK_EVALUATION_H_

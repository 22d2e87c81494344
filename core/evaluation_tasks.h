#ifndef ATOLL_CORE_EVALUATION_TASKS_H_
#define ATOLL_CORE_EVALUATION_TASKS_H_

#include <algorithm>
#include <iterator>
#include <string_view>

namespace atl {

/// The tasks of evaluation.tasks (docs/reference/evaluation.md). Each names a kind of file too:
/// worker/app/eval reads them.
inline constexpr std::string_view kEvaluationTasks[] = {"hellaswag", "mmlu", "choices"};

inline bool IsEvaluationTask(std::string_view name) {
  return std::ranges::find(kEvaluationTasks, name) != std::ranges::end(kEvaluationTasks);
}

}  // namespace atl

#endif  // ATOLL_CORE_EVALUATION_TASKS_H_

#ifndef ATOLL_SERVER_RUN_TASK_SCORE_CHECK_H_
#define ATOLL_SERVER_RUN_TASK_SCORE_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "core/protocol/heartbeat.h"

namespace atl {

/// What the scores of one evaluation may be at most.
inline constexpr size_t kMaxTaskMetrics = 24;  // of all tasks together
inline constexpr size_t kMaxMetricBytes = 32;
inline constexpr uint64_t kMaxTaskQuestions = 1'000'000'000;

/// OK when `score` is one of `tasks`, names its metric in a-z, 0-9 and _, and is a share of questions (0 to
/// 1) with a standard error of 0 to 1. InvalidArgument says what is wrong, without a name of the sender's
/// choice.
absl::Status CheckTaskScore(const TaskScore& score, std::span<const std::string> tasks);

/// "hellaswag acc 0.3125 ±0.0046".
std::string TaskScoreText(const TaskScore& score);

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_TASK_SCORE_CHECK_H_

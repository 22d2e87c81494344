#ifndef ATOLL_WORKER_APP_EVAL_SCORER_H_
#define ATOLL_WORKER_APP_EVAL_SCORER_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/torch/token_scores.h"

namespace atl {

/// A model that scores texts (TorchReplica::Score).
struct Scorer {
  uint32_t context = 0;  // tokens that it sees
  std::function<absl::StatusOr<std::vector<TokenScores>>(std::span<const ScoreRequest>)> score;
};

/// Hears how much is done, in the unit of the caller.
using ScoreProgress = std::function<void(uint64_t done)>;

}  // namespace atl

#endif  // ATOLL_WORKER_APP_EVAL_SCORER_H_

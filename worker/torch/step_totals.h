#ifndef ATOLL_WORKER_TORCH_STEP_TOTALS_H_
#define ATOLL_WORKER_TORCH_STEP_TOTALS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/torch/rank_collectives.h"

namespace atl {

/// What decides whether a step is taken: the same bits on all ranks.
struct StepTotals {
  double loss = 0;              // mean over the ranks
  double gradient_squares = 0;  // of the summed gradients
};

/// OK when all ranks are. Otherwise the rank's own error, or Aborted on the ranks without one.
absl::Status Agree(RankCollectives& ranks, const absl::Status& own);

/// From this rank's loss, and the squares of its slice of the summed gradients. Fails as Agree does.
absl::StatusOr<StepTotals> SumOverRanks(RankCollectives& ranks, const absl::StatusOr<double>& loss,
                                        double gradient_squares);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_STEP_TOTALS_H_

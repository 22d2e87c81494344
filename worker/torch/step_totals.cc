#include "worker/torch/step_totals.h"

#include <array>

namespace atl {
namespace {

absl::Status Verdict(double failed, const absl::Status& own) {
  if (!own.ok()) return own;
  if (failed > 0) return absl::AbortedError("another rank of the island failed");
  return absl::OkStatus();
}

}  // namespace

absl::Status Agree(RankCollectives& ranks, const absl::Status& own) {
  std::array<double, 1> failed = {own.ok() ? 0.0 : 1.0};
  ranks.Sum(failed);
  return Verdict(failed[0], own);
}

absl::StatusOr<StepTotals> SumOverRanks(RankCollectives& ranks, const absl::StatusOr<double>& loss,
                                        double gradient_squares) {
  std::array<double, 3> sums = {loss.ok() ? 0.0 : 1.0, loss.ok() ? *loss : 0.0, gradient_squares};
  ranks.Sum(sums);
  const absl::Status verdict = Verdict(sums[0], loss.status());
  if (!verdict.ok()) return verdict;
  return StepTotals{.loss = sums[1] / ranks.size(), .gradient_squares = sums[2]};
}

}  // namespace atl

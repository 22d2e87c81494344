#include "client/sync/divergence_guard.h"

#include "client/sync/rejection.h"

namespace atl {

bool IsNotFinite(const absl::Status& step) {
  return absl::IsFailedPrecondition(step) && RejectionReasonOf(step) == RejectionReason::kNone;
}

void DivergenceGuard::RoundDropped(Version base, const absl::Status& why) {
  ++in_a_row_;
  why_ = why;
  context_.observer->OnRoundNotFinite();
  hopeless_ = in_a_row_ >= options_.max_rounds_not_finite;
  const LogFields fields = {{"base", base.value()}, {"in_a_row", in_a_row_}, {"error", Explain(why)}};
  if (hopeless_) {
    context_.log.Error("round after round is not finite; giving up: lower the learning rate", fields);
  } else {
    context_.log.Warning("the round is not finite; dropped, going on from the published parameters", fields);
  }
}

}  // namespace atl

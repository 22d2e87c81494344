#include "core/grace_estimate.h"

#include <algorithm>

namespace atl {

void GraceEstimate::Closed(const RoundView& view, const RoundOptions& options) {
  const std::optional<MonoTime> quorum_at = QuorumReachedAt(view, options);
  if (!quorum_at) return;
  folded_ = average();
  newest_ = Sample{.base = view.base,
                   .quorum_at = *quorum_at,
                   .last_at = std::max(*quorum_at, view.arrived.back().at),
                   .most = options.deadline,
                   .missing = view.expected};
}

void GraceEstimate::CameLate(const WorkerName& worker, Version base, MonoTime at) {
  if (!newest_ || newest_->base != base) return;
  // Each straggler counts once, at its first attempt: how often it tries says nothing.
  const auto found = std::find(newest_->missing.begin(), newest_->missing.end(), worker);
  if (found == newest_->missing.end()) return;
  newest_->missing.erase(found);
  newest_->last_at = std::max(newest_->last_at, at);
}

std::optional<double> GraceEstimate::average() const {
  if (!newest_) return folded_;
  const double newest = ToSeconds(std::min(newest_->last_at - newest_->quorum_at, newest_->most));
  return folded_ ? *folded_ + kWeight * (newest - *folded_) : newest;
}

Duration OverlapGrace(uint32_t delay_steps, double steps_per_second, Duration to_quorum, Duration sync) {
  const double hidden = static_cast<double>(delay_steps) / steps_per_second;
  return Seconds(kOverlapGraceShare * std::max(0.0, hidden - ToSeconds(to_quorum) - ToSeconds(sync)));
}

RoundOptions GraceEstimate::Applied(RoundOptions options) const {
  if (options.grace_mode != GraceMode::kAdaptive) return options;
  if (const auto seconds = average()) options.grace = std::max(kFloor, Seconds(kFactor * *seconds));
  return options;
}

}  // namespace atl

#ifndef ATOLL_CORE_GRACE_ESTIMATE_H_
#define ATOLL_CORE_GRACE_ESTIMATE_H_

#include <optional>
#include <vector>

#include "common/clock.h"
#include "common/ids.h"
#include "core/round_policy.h"
#include "core/run_options.h"

namespace atl {

/// Estimates the grace period for stragglers after the quorum, from the time that they took in earlier
/// rounds:
///
///   grace = max(kFloor, kFactor * EMA(last arrival - quorum arrival)), EMA weight kWeight of the newest
///   round
///
/// Contributions that were still awaited when the round closed also count if they arrive (late or rejected)
/// before the next round closes; otherwise a grace that is too short would never grow. Rounds that closed
/// without a quorum do not count. Decide limits the grace by the deadline. In memory only: after a restart,
/// round.grace_s applies until the first round has closed. Pure; not thread-safe.
class GraceEstimate {
 public:
  static constexpr double kWeight = 0.3;
  static constexpr double kFactor = 2;
  static constexpr Duration kFloor = Seconds(0.1);

  /// The round of this view has closed.
  void Closed(const RoundView& view, const RoundOptions& options);
  /// A contribution to an earlier base arrived.
  void CameLate(const WorkerName& worker, Version base, MonoTime at);

  /// Seconds from the quorum to the last, averaged; nullopt: no round has closed yet.
  std::optional<double> average() const;
  /// `options` as they hold for a round that opens now: with adaptive grace, once there is an average, its
  /// grace is the estimate.
  RoundOptions Applied(RoundOptions options) const;

 private:
  struct Sample {
    Version base = {};
    MonoTime quorum_at = {};
    MonoTime last_at = {};
    Duration most = {};
    std::vector<WorkerName> missing = {};
  };
  std::optional<double> folded_;  // of the rounds before the newest
  std::optional<Sample> newest_;  // may still grow
};

/// The share of the time hidden by overlap that stragglers get.
inline constexpr double kOverlapGraceShare = 0.8;

/// The grace of an overlapped round: what the first to arrive does not feel, because it uses the answer only
/// `delay_steps` of its inner steps after its push (Decoupled DiLoCo, arXiv 2604.21428):
///   gamma * max(0, delay * step - to_quorum - sync),   gamma = kOverlapGraceShare
/// steps_per_second > 0: its speed; to_quorum: from its arrival to the quorum's; sync: merge and commit.
Duration OverlapGrace(uint32_t delay_steps, double steps_per_second, Duration to_quorum, Duration sync);

}  // namespace atl

#endif  // ATOLL_CORE_GRACE_ESTIMATE_H_

#ifndef ATOLL_SERVER_RUN_TRAINING_TIME_H_
#define ATOLL_SERVER_RUN_TRAINING_TIME_H_

#include <cstdint>
#include <optional>

#include "common/clock.h"
#include "core/round.h"
#include "server/members/member_registry.h"

namespace atl {

/// For how long of an open round somebody trained: what the run's pace is measured by. Pure state, not
/// thread-safe.
class TrainingTime {
 public:
  /// After a restart: so many rounds of fragment 0 are still to close with contributions that may be older
  /// than this coordinator.
  void Restored(uint32_t untimed_rounds) { untimed_rounds_ = untimed_rounds; }
  /// A trainer came to a run without one.
  void Began(MonoTime now) { trained_since_ = now; }
  /// A round of fragment 0 closed.
  void RoundClosed() {
    if (untimed_rounds_ > 0) --untimed_rounds_;
  }

  /// False while the workers' own figures include the time in which they had no coordinator.
  bool measured() const { return untimed_rounds_ == 0; }
  /// Seconds of a closing round in which nobody worked on it; none: its open time says nothing of the pace.
  std::optional<double> IdleSeconds(const Round& round, Duration lease, const MemberRegistry& members) const;
  /// For how long this open round of fragment 0 has been worked on; 0: not known.
  double WorkedSeconds(const Round& round, Duration lease, const MemberRegistry& members, MonoTime now) const;

 private:
  /// How long this round was open before a trainer came to a run without one, if longer than a lease: no part
  /// of the run's speed.
  Duration Idle(const Round& round, Duration lease) const;

  MonoTime trained_since_{};
  uint32_t untimed_rounds_ = 0;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_TRAINING_TIME_H_

#ifndef ATOLL_SERVER_WEB_RUN_HISTORY_H_
#define ATOLL_SERVER_WEB_RUN_HISTORY_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/mutex.h"
#include "server/coordinator.h"
#include "server/web/loss_curve.h"

namespace atl {

/// The coordinator's traffic, both ways, at one moment: totals, so that a rate is a difference.
struct TrafficPoint {
  int64_t unix_ns = 0;
  uint64_t push_bytes = 0;
  uint64_t pull_bytes = 0;
};

/// The history that a newly opened page shows, in bounded memory: the newest events, the loss curve, the
/// traffic of the last minutes. Thread-safe.
class RunHistory {
 public:
  static constexpr size_t kEvents = 1000;
  static constexpr size_t kMilestones = 500;  // workers' comings and goings, kept longer than the rest
  static constexpr size_t kTrafficPoints = 180;
  static constexpr Duration kTrafficPeriod = Seconds(5);

  /// Follows the coordinator's events. Both outlive it.
  RunHistory(Coordinator* coordinator, const Clock* clock);
  ~RunHistory();

  /// Call it about once a second from one thread. Reads the newly closed rounds (some thousands at a time in
  /// a long run) and records a traffic point when one is due.
  void Follow();
  /// Ends the subscription; idempotent.
  void Stop();

  /// Above `after`, ascending, the newest `limit`.
  std::vector<EventView> Events(uint64_t after, size_t limit) const;
  /// Joins, returns, leaves, losses, drains, bans: ascending.
  std::vector<EventView> Milestones() const;
  std::vector<TrafficPoint> Traffic() const;
  /// CurveJson of fragment 0.
  std::string Curve(const std::vector<EvaluationView>& evaluations) const;

 private:
  bool Take(const EventView& event);
  void FollowRounds();
  void SampleTraffic();

  Coordinator* const coordinator_;
  const Clock* const clock_;
  mutable Mutex mutex_;
  std::deque<EventView> events_ ABSL_GUARDED_BY(mutex_);
  std::deque<EventView> milestones_ ABSL_GUARDED_BY(mutex_);
  std::deque<TrafficPoint> traffic_ ABSL_GUARDED_BY(mutex_);
  LossCurve curve_ ABSL_GUARDED_BY(mutex_);
  bool rounds_closed_ ABSL_GUARDED_BY(mutex_) = true;  // since Follow looked
  MonoTime sampled_{};                                 // of the thread that follows
  uint64_t subscription_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace atl

#endif  // ATOLL_SERVER_WEB_RUN_HISTORY_H_

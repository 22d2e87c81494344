#ifndef ATOLL_TESTS_GUARD_WORKER_LIFE_H_
#define ATOLL_TESTS_GUARD_WORKER_LIFE_H_

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "client/sync/heartbeater.h"
#include "client/sync/metered_connection.h"
#include "client/sync/optimizer_warmup.h"
#include "client/sync/outer_sync.h"
#include "client/sync/retry_policy.h"
#include "client/sync/retrying_connection.h"
#include "client/sync/session.h"
#include "client/sync/worker_checkpoint.h"
#include "client/sync/worker_status.h"
#include "common/clock.h"
#include "tests/client/sync/fake_replica.h"
#include "tests/common/fake_clock.h"
#include "tests/guard/direct_connection.h"
#include "tests/guard/turnstile.h"

namespace atl {

/// Every sleep ends the turn, and takes no longer than that.
class TurnSleeper final : public Sleeper {
 public:
  TurnSleeper(Turnstile* turnstile, FakeClock* clock, const DirectConnection* connection)
      : turnstile_(turnstile), clock_(clock), connection_(connection) {}
  bool SleepFor(Duration duration) override {
    clock_->Advance(duration);
    turnstile_->Yield();
    return !connection_->killed;
  }

 private:
  Turnstile* const turnstile_;
  FakeClock* const clock_;
  const DirectConnection* const connection_;
};

/// One process of a worker, as a thread whose turns the scheduler gives: join, train in the run's mode over
/// the real synchronisation loop, until it is killed, drained or finished. As Worker::Run, but for the
/// heartbeats, which the scheduler asks for.
class WorkerLife {
 public:
  /// Starts at the next turn. `folder` keeps its state between lives.
  WorkerLife(CoordinatorLink* link, const WorkerName& name, const std::string& folder);
  ~WorkerLife();

  /// As kill -9: what it has written stays, and nothing more is written. The thread ends by turns.
  void Kill();
  /// For the scheduler.
  void Beat();
  bool ended() const { return ended_; }
  bool killed() const { return connection_.killed; }
  bool trains() const { return session_.joined() && !ended_; }
  const absl::Status& status() const { return status_; }
  DirectConnection& connection() { return connection_; }
  const WorkerName& name() const { return name_; }
  /// Waits for what is being written in the background.
  void Flush();

 private:
  absl::StatusOr<SyncEnd> Live();
  absl::Status BuildReplica(const JoinedRun& info);
  absl::Status LoadKept(const JoinedRun& info);
  absl::Status GoToData();
  absl::StatusOr<SyncEnd> Synchronise();
  absl::StatusOr<SyncEnd> Overlap(const std::vector<FragmentLayout>& layout, const ResumeState& resume_state);

  CoordinatorLink* const link_;
  const WorkerName name_;
  const std::string folder_;
  FakeClock clock_;
  DirectConnection connection_;
  TurnSleeper sleeper_;
  WorkerObserver observer_;
  WorkerStatus worker_status_;
  TimeAccount time_{&clock_, TimeUse::kOther};
  WorkerContext context_;
  RetryPolicy retry_policy_;
  MeteredConnection metered_;
  RetryingConnection retrying_;
  Session session_;
  Heartbeater heartbeater_;
  OptimizerWarmup optimizer_warmup_;
  std::unique_ptr<WorkerCheckpoint> checkpoint_;
  std::unique_ptr<Replica> replica_;
  uint64_t built_for_ = 0;
  bool ended_ = false;
  absl::Status status_;
  std::thread thread_;  // last: it uses everything above
};

}  // namespace atl

#endif  // ATOLL_TESTS_GUARD_WORKER_LIFE_H_

#ifndef ATOLL_CLIENT_SYNC_WORKER_STATUS_H_
#define ATOLL_CLIENT_SYNC_WORKER_STATUS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/sync/compute_rate.h"
#include "client/sync/connection.h"
#include "client/sync/push_outcomes.h"
#include "client/sync/replica.h"
#include "client/sync/time_account.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace atl {

/// What the worker was told, by the coordinator or by its own process.
struct WorkerCommands {
  bool stop = false;          // leave after the inner step in progress, push nothing
  bool drain = false;         // finish the round, push, leave
  bool at_once = false;       // with drain: do not finish it, push what is done
  bool restart = false;       // with drain: do not leave, restart as a new process
  bool resync = false;        // drop the round, pull the head
  bool seed_granted = false;  // this worker is to seed the run
  bool paused = false;        // the run: nobody trains until it is resumed
  bool run_stopped = false;   // the run, permanently
  absl::Status membership;    // not OK: a heartbeat was refused like this, or Distrust; join again, or exit
};

/// What is exchanged between the training thread, which reports progress and follows commands, and the
/// heartbeat thread, which carries both to and from the coordinator. Thread-safe; never blocks for long.
class WorkerStatus {
 public:
  /// A new life: the heartbeats carry it from now on, and what was said to the former one is forgotten.
  void SetMember(const MemberRef& member, bool seed_granted) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<MemberRef> member() const ABSL_LOCKS_EXCLUDED(mutex_);

  /// `change` must not call the worker status.
  void Update(const std::function<void(ProgressReport&)>& change) ABSL_LOCKS_EXCLUDED(mutex_);
  void SetPhase(WorkerPhase phase, const std::string& waiting_for = "") ABSL_LOCKS_EXCLUDED(mutex_);
  /// The training thread waits for the coordinator, which does not answer: for what and why, in words.
  void AwaitCoordinator(const std::string& waiting_for) ABSL_LOCKS_EXCLUDED(mutex_);
  /// The coordinator has answered another thread. Whether that wait was shown until now: it is over, though
  /// its thread may not have tried again yet.
  bool CoordinatorAnswers() ABSL_LOCKS_EXCLUDED(mutex_);
  /// Adds an inner step to the speed in the progress, which spans rounds (ComputeRate).
  void NoteStep(uint64_t tokens, Duration took, const ComputeCost& cost) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Where the time goes is read from these, which outlive the worker status. Before its first use by two
  /// threads.
  void WatchTime(const TimeAccount* training, const TimeAccounts* exchanges) {
    training_time_ = training;
    exchange_time_ = exchanges;
  }
  /// What was last told, with the time up to now.
  ProgressReport progress() const ABSL_LOCKS_EXCLUDED(mutex_);

  /// Evaluations stay until a heartbeat has delivered them; so do confirmations, the newest
  /// kConfirmationsKept of them, as long as the epoch stays the one that they were signed for.
  void AddEvaluation(const EvaluationReport& report) ABSL_LOCKS_EXCLUDED(mutex_);
  void AddConfirmation(const Confirmation& confirmation) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Drops evaluations and confirmations of versions above these heads: they are lost (WentBack), and others
  /// will have their numbers.
  void DropAbove(const std::vector<FragmentHead>& heads) ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<EvaluationReport> evaluations() const ABSL_LOCKS_EXCLUDED(mutex_);
  static constexpr size_t kConfirmationsKept = 64;

  /// Losses and gradient norms are not told: the run asks for privacy.
  void HideLosses(bool secret) ABSL_LOCKS_EXCLUDED(mutex_);

  /// What the next heartbeat tells; what of it has arrived.
  HeartbeatCall Report() const ABSL_LOCKS_EXCLUDED(mutex_);
  void ReportDelivered(const HeartbeatCall& report) ABSL_LOCKS_EXCLUDED(mutex_);

  /// What a heartbeat of `member` brought back; answers to a former life are ignored.
  void Receive(const MemberRef& member, const HeartbeatReply& reply) ABSL_LOCKS_EXCLUDED(mutex_);
  void HeartbeatRejected(const MemberRef& member, const absl::Status& rejection) ABSL_LOCKS_EXCLUDED(mutex_);

  /// Permanent: the worker stops for this reason, whatever the coordinator answers.
  void Distrust(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

  /// The state of the run, as a pull has it.
  void NoteRunState(RunState state) ABSL_LOCKS_EXCLUDED(mutex_);

  /// SIGTERM and kin. Drain, at once; false: there is nothing to push and to report, so stop instead.
  bool RequestDrain() ABSL_LOCKS_EXCLUDED(mutex_);
  void RequestStop() ABSL_LOCKS_EXCLUDED(mutex_);
  WorkerCommands commands() const ABSL_LOCKS_EXCLUDED(mutex_);
  /// The worker has carried out this command, or used the seed grant; a heartbeat may bring another one.
  void Done(bool WorkerCommands::*command) ABSL_LOCKS_EXCLUDED(mutex_);

  PushOutcomes& push_outcomes() { return push_outcomes_; }

 private:
  void FollowRunState(RunState state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ProgressReport WithTime(ProgressReport progress) const;

  const TimeAccount* training_time_ = nullptr;
  const TimeAccounts* exchange_time_ = nullptr;
  PushOutcomes push_outcomes_;
  mutable Mutex mutex_;
  std::optional<MemberRef> member_ ABSL_GUARDED_BY(mutex_);
  ProgressReport progress_ ABSL_GUARDED_BY(mutex_);
  std::string awaited_ ABSL_GUARDED_BY(mutex_);  // AwaitCoordinator's words; empty: it has answered since
  ComputeRate rate_ ABSL_GUARDED_BY(mutex_);
  std::vector<EvaluationReport> evaluations_ ABSL_GUARDED_BY(mutex_);
  std::vector<Confirmation> confirmations_ ABSL_GUARDED_BY(mutex_);
  WorkerCommands commands_ ABSL_GUARDED_BY(mutex_);
  absl::Status distrust_ ABSL_GUARDED_BY(mutex_);
  bool secret_losses_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_WORKER_STATUS_H_

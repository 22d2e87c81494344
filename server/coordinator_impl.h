#ifndef ATOLL_SERVER_COORDINATOR_IMPL_H_
#define ATOLL_SERVER_COORDINATOR_IMPL_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "common/byte_budget.h"
#include "common/mutex.h"
#include "common/periodic_task.h"
#include "server/admin/admin_impl.h"
#include "server/admin/checkpoint_keeper.h"
#include "server/coordinator.h"
#include "server/coordinator_context.h"
#include "server/create_coordinator.h"
#include "server/events/event_log.h"
#include "server/opening/run_opening.h"
#include "server/publish/confirmations.h"
#include "server/publish/published_versions.h"
#include "server/rounds/merge_engine.h"
#include "server/rounds/round_driver.h"
#include "server/run/coordinator_state.h"
#include "server/run/effect_executor.h"

namespace atl {

/// The parts put together: each use case is a call to the coordinator's state, then its effects. Sessions
/// that it handed out must be destroyed before it.
class CoordinatorImpl final : public Coordinator {
 public:
  CoordinatorImpl(ServingOptions options, CoordinatorDeps deps, std::unique_ptr<MergeEngine> engine,
                  OpenedRun opened);
  ~CoordinatorImpl() override;

  absl::StatusOr<JoinReply> Join(const JoinCall& call) override;
  absl::StatusOr<HeartbeatReply> Heartbeat(const MemberRef& caller, const HeartbeatCall& call) override;
  absl::Status Leave(const MemberRef& caller, const std::string& reason) override;
  absl::StatusOr<std::unique_ptr<SeedSession>> StartSeed(const MemberRef& caller,
                                                         const Manifest& manifest) override;
  absl::StatusOr<std::unique_ptr<PushSession>> StartPush(const MemberRef& caller,
                                                         const PushHeader& header) override;
  absl::StatusOr<PushStatusReply> GetPushStatus(const MemberRef& caller, const PushKey& key) override;
  absl::StatusOr<ConfirmationPage> GetConfirmations(const ConfirmationQuery& query) override;
  uint64_t Pull(const MemberRef& caller, const PullCall& call, PullDone done) override;
  void CancelPull(uint64_t id) override;
  void CountPulledBytes(const WorkerName& worker, uint64_t bytes) override;
  uint64_t Subscribe(uint64_t after_sequence, EventSink sink) override;
  void Unsubscribe(uint64_t id) override;
  StatusView GetStatus(uint32_t history) override;
  std::vector<WorkerView> ListWorkers(bool all) override;
  AdminControl& admin() override { return admin_; }
  void Shutdown() override;

 private:
  CoordinatorContext MakeContext(ServingOptions options, const CoordinatorDeps& deps,
                                 const OpenedRun& opened);
  void Start(OpenedRun opened);
  void FollowLauncher();
  absl::Status CheckOpen() const;
  uint64_t StagedBytes(const MemberRef& caller, const PushKey& key);
  absl::StatusOr<PullResult> Answer(const MemberRef& caller, const PullCall& call,
                                    PublishedVersions::Outcome outcome, SnapshotPtr snapshot);
  /// Judges those of a heartbeat, and has a worker that diverged pull again.
  void CheckConfirmations(const MemberRef& caller, const std::vector<Confirmation>& confirmations,
                          HeartbeatReply& result, Effects& effects);
  void Tick();
  /// Has the launcher end workers whose lease ended before they obeyed a command: nobody else would.
  void EndUnresponsive(const Effects& effects, MonoTime now);
  void ShowNumbers();

  // Constant after construction.
  CoordinatorObserver silent_;
  const std::unique_ptr<RunStore> store_;
  const std::unique_ptr<MergeEngine> engine_;
  CoordinatorObserver* const observer_;
  std::atomic<bool> shutting_down_{false};
  CoordinatorState state_;
  PublishedVersions published_versions_;
  EventLog events_;
  ByteBudget budget_;
  EffectExecutor effect_executor_;
  Confirmations confirmations_;
  const CoordinatorContext context_;
  const MonoTime started_;

  RoundDriver driver_;
  CheckpointKeeper checkpoints_;
  Mutex shutdown_mutex_;  // makes a second Shutdown wait for the first
  bool shut_down_ ABSL_GUARDED_BY(shutdown_mutex_) = false;
  std::unique_ptr<PeriodicTask> housekeeping_;
  const std::unique_ptr<Launcher> launcher_;  // its thread announces events
  AdminImpl admin_;                           // last: uses everything above
};

}  // namespace atl

#endif  // ATOLL_SERVER_COORDINATOR_IMPL_H_

#ifndef ATOLL_SERVER_RUN_COORDINATOR_STATE_H_
#define ATOLL_SERVER_RUN_COORDINATOR_STATE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "core/privacy.h"
#include "core/run_options.h"
#include "server/coordinator.h"
#include "server/events/event_throttle.h"
#include "server/members/evaluation_assignment.h"
#include "server/members/member_records.h"
#include "server/members/member_registry.h"
#include "server/members/offence_tracker.h"
#include "server/members/rejected_joins.h"
#include "server/rounds/fragment_round.h"
#include "server/run/config_snapshot.h"
#include "server/run/effects.h"
#include "server/run/run_statistics.h"
#include "server/run/seed_grant.h"
#include "storage/run_store.h"

namespace atl {

struct CoordinatorStateOptions {
  ConfigPtr config;  // the newest one recorded
  RunIdentity identity;
  uint32_t fragments = 1;
  Duration heartbeat{};
  Duration final_evaluation_wait{};
};

/// Everything small that the coordinator knows of its run, under one lock: members, open rounds, the seed
/// grant, the evaluation assignment, the account. It decides nothing that core decides, touches neither disk
/// nor tensors, and calls nobody: what a change asks of the outside comes back as Effects. Thread-safe; `now`
/// is never before an earlier call's by more than the calls' own race.
class CoordinatorState {
 public:
  explicit CoordinatorState(const CoordinatorStateOptions& options);

  /// Once, before anything else: what was on disk. `layouts`, and the configurations that the open rounds
  /// were opened with, are empty when the run is not seeded. Returns the fragments that will have no further
  /// version.
  std::vector<FragmentId> Restore(const Recovery& recovery, const std::vector<FragmentLayout>& layouts,
                                  const std::vector<OpenRoundConfig>& round_configs, MonoTime now);

  /// The newest configuration.
  ConfigPtr config() const;
  /// The one that the fragment's open round was opened with: a round keeps it to its end.
  ConfigPtr RoundConfig(FragmentId fragment) const;
  /// Bytes of the largest payload that a push of `elements` to the fragment's open round may have.
  uint64_t LargestPush(FragmentId fragment, uint64_t elements) const;
  /// The largest round.staleness_limit of the newest configuration and of all open rounds.
  uint32_t StalenessLimit() const;
  /// In force from the next round of each fragment; what belongs to no round (limits, evaluations) at once.
  void Configure(ConfigPtr config, Effects& effects);

  // Administration (coordinator_state_admin.cc).
  ControlEntry control() const;
  /// FailedPrecondition, saying the state, when the action makes no sense now.
  absl::Status CheckControl(RunMode mode) const;
  /// What was recorded is in force: rounds wait, go on with their deadlines counting anew, or close for good.
  void SetControl(const ControlEntry& control, MonoTime now, Effects& effects);
  /// So many workers are wanted of the launcher: recorded, for the next start.
  void SetWorkers(const ControlEntry& control);
  /// Closes the open round of every fragment that has contributions; how many those are. FailedPrecondition
  /// when nothing arrived, or no round closes now.
  absl::StatusOr<uint32_t> CloseRounds(const std::string& why, Effects& effects);
  /// Of a run that is stopped or whose budget is spent: fragments with nothing left to count have no further
  /// version. Returns them.
  std::vector<FragmentId> FinishEnded(MonoTime now);
  bool finished() const;
  /// FailedPrecondition when the run is stopped or finished.
  absl::Status CheckOpen() const;
  /// Of all fragments, in order; empty while the run is not seeded.
  std::vector<FragmentLayout> Layouts() const;
  uint64_t CommittedTokens() const;
  /// Bytes: limits.contribution_budget_mib, and not less than one contribution to an open round by any of its
  /// codecs. Set together with a smaller codec it would hold none of the round that is open, which waits.
  uint64_t ContributionBudget() const;
  bool IsTrainer(const WorkerName& worker) const;
  /// NotFound when the name was never seen.
  absl::StatusOr<WorkerView> Worker(const WorkerName& worker, MonoTime now) const;
  /// Tells a live worker this with its next heartbeats, until it obeyed; its record is to be stored with it.
  /// FailedPrecondition when it is not live.
  absl::Status SetCommand(const WorkerName& worker, const PendingCommand& command, Effects& effects);
  /// Removes the member at once; what it contributed stays. FailedPrecondition when it has left.
  absl::Status Evict(const WorkerName& worker, const std::string& why, MonoTime now, Effects& effects);
  /// FailedPrecondition when it is so already.
  absl::Status SetBanned(const WorkerName& worker, bool banned, const std::string& why, MonoTime now,
                         Effects& effects);

  // What an operator does to members, before it is done (coordinator_state_records.cc).
  /// Their records after the action. Fails as the action itself would.
  absl::StatusOr<MemberRecords> RecordsAfter(MemberAction action, const WorkerName& worker) const;
  /// After departed workers that have been gone for longer are forgotten.
  absl::StatusOr<MemberRecords> RecordsAfterForgetting(Duration age, MonoTime now) const;
  /// After ResetDataset.
  MemberRecords RecordsWithoutDataset() const;

  /// The next contribution pins the token files of the run anew.
  void ResetDataset(Effects& effects);
  /// See MemberRegistry.
  std::vector<WorkerName> Drained() const;
  /// Those of Drained() that are wanted again are drained no more, whether they join or not.
  void CancelDrains(const std::vector<WorkerName>& wanted, Effects& effects);
  bool IsLiveTrainer(const WorkerName& worker) const;
  /// Live trainers other than those that `except` names: each has a part of shared data.
  uint32_t LiveTrainersExcept(const std::function<bool(const WorkerName&)>& except) const;

  // Extension (coordinator_state_extend.cc).
  /// Where in the schedule the next round will begin; where the run is, when it is finished.
  double NextRoundPosition() const;
  double Position() const;
  /// FailedPrecondition when the run is stopped.
  absl::Status CheckNotStopped() const;
  /// The budget was raised: fragments that were finished go on. Returns them.
  std::vector<FragmentId> ResumeFinished(MonoTime now, Effects& effects);
  /// Forgets one departed worker. NotFound, FailedPrecondition (it is live, or banned).
  absl::Status Forget(const WorkerName& worker, Effects& effects);

  // Restore (coordinator_state_restore.cc).
  /// No push is admitted and no acceptance begins until Release: Unavailable, with a retry delay.
  void HoldAcceptances();
  void ReleaseAcceptances();
  /// Unavailable when those in flight do not end within `timeout`.
  absl::Status AwaitAcceptances(Duration timeout);
  /// The run goes on from these contents, under their epoch; `sources`: the versions that they were, by
  /// fragment. Returns the fragments that will have no further version.
  std::vector<FragmentId> Restored(const EpochStart& start, const std::vector<Version>& sources, MonoTime now,
                                   Effects& effects);

  // Members (coordinator_state_members.cc).
  absl::StatusOr<JoinResult> Join(const JoinCall& call, MonoTime now, Effects& effects);
  absl::StatusOr<HeartbeatResult> Heartbeat(const HeartbeatCall& call, MonoTime now, int64_t unix_ns,
                                            Effects& effects);
  absl::Status Leave(const Caller& caller, const std::string& reason, MonoTime now, Effects& effects);
  /// Ends leases, passes the seed grant on, announces the end of the run.
  void Tick(MonoTime now, Effects& effects);
  std::optional<WorkerEntry> Entry(const WorkerName& name) const;
  /// Of the worker's confirmations; empty: it signs nothing.
  std::string PublicKey(const WorkerName& worker) const;

  // Seeding.
  /// Whether the caller may upload version 0 now.
  absl::Status CheckSeeder(const Caller& caller, MonoTime now, Effects& effects);
  /// An upload of the seed ended before it was whole.
  void SeedUploadAborted(const WorkerName& worker, Effects& effects);
  bool seeded() const;
  /// That the worker joined with; empty: not known.
  std::string ManifestHashOf(const WorkerName& worker) const;
  /// Version 0 is on disk: opens the rounds.
  void Seeded(const Manifest& manifest, const std::vector<FragmentLayout>& layouts, const WorkerName& by,
              MonoTime now, Effects& effects);

  // Contributions (coordinator_state_push.cc).
  struct Admission {
    Contribution contribution;      // what it claims is capped; norm not known yet
    uint64_t claimed_position = 0;  // in the data, as its worker has it
    bool duplicate = false;
    bool capped = false;
    uint64_t elements = 0;
  };
  absl::StatusOr<Admission> AdmitPush(const PushCall& call, MonoTime now, Effects& effects);
  /// Before the contribution becomes durable; every OK is followed by one EndAccept.
  absl::Status BeginAccept(const Caller& caller, const Admission& admission, MonoTime now);
  PushResult EndAccept(const Admission& admission, bool durable, MonoTime now, Effects& effects);
  PushResult Arrivals(FragmentId fragment, MonoTime now) const;
  void CountPush(const WorkerName& worker, uint64_t bytes);
  void CountPull(const WorkerName& worker, uint64_t bytes);
  /// Counts a refused push. Whether it may be announced: a worker that goes on pushing what is refused must
  /// not fill the event log.
  bool CountRejected(const WorkerName& worker, MonoTime now);
  /// Its push to this fragment was refused for what it contains.
  void RejectedFor(Offence offence, const PushCall& call);
  /// ALREADY_PUSHED when its worker pushed the same bytes for another base that is remembered: no training
  /// gives the same pseudo-gradient twice, unless that is zero. Only where contributions are measured.
  absl::Status CheckReplay(const Contribution& contribution) const;
  /// All but the received bytes.
  absl::StatusOr<PushStatusResult> PushStatus(const PushStatusCall& call, MonoTime now, Effects& effects);

  // Pulls.
  absl::Status CheckPull(const PullCall& call, MonoTime now, Effects& effects);
  /// The caller has a version above the head: the data directory is an older copy of itself. An event says
  /// so, some of each worker.
  void NoteLostVersions(const PullCall& call, Version head, MonoTime now, Effects& effects);
  /// The worker gets this version: it begins to pull it.
  RoundPlanView Deliver(const WorkerName& worker, FragmentId fragment, Version version,
                        uint64_t committed_tokens, MonoTime now);
  std::string WaitingFor(FragmentId fragment) const;
  RunStateView state() const;

  // Rounds (coordinator_state_rounds.cc).
  /// What the policy says of the fragment's round. Never kClose while it is not seeded or finished.
  RoundDecision Decide(FragmentId fragment, MonoTime now, Effects& effects);
  /// See FragmentRound.
  std::optional<std::vector<Contribution>> BeginClose(FragmentId fragment);
  void Exclude(FragmentId fragment, const Contribution& contribution, const std::string& why,
               Effects& effects);
  /// The fragment's committed tokens after a round of these contributions.
  uint64_t TokensAfter(FragmentId fragment, const std::vector<Contribution>& contributions) const;
  std::vector<PartitionEntry> PartitionsAfter(FragmentId fragment,
                                              const std::vector<Contribution>& contributions) const;
  /// How the contributions of the round that is closing lay to their merge, and who was refused meanwhile
  /// (coordinator_state_offences.cc).
  std::vector<ContributionAudit> Audit(FragmentId fragment, const std::vector<Contribution>& contributions,
                                       const MergeFindings& findings) const;
  /// The record is on disk: moves the head and opens the next round, unless the run is finished. Returns the
  /// fragments that will have no further version.
  std::vector<FragmentId> Committed(const RoundRecord& record, double commit_seconds, MonoTime now,
                                    Effects& effects);
  /// The round could close, but the tensors of its base are still being written: says so until the next
  /// Decide.
  void AwaitStorage(FragmentId fragment);
  void Stored(FragmentId fragment, Version version);
  /// What fails now in this kind of write ("commit of fragment 0"); empty: nothing. Announces the change.
  void SetStorageError(const std::string& where, const std::string& error, MonoTime now, Effects& effects);
  /// The run cannot go on without an operator.
  void SetFault(const std::string& fault);

  // Views (coordinator_state_views.cc).
  struct Numbers {
    uint32_t active_trainers = 0;
    uint32_t live_others = 0;
    uint32_t lost = 0;
    RunStateView state = RunStateView::kStarting;
    uint64_t committed_tokens = 0;
    uint64_t total_tokens = 0;
    std::string storage_error;                  // empty: the data directory can be written
    std::vector<FragmentStatusView> fragments;  // id, version, stored
  };
  Numbers numbers() const;
  /// All but uptime, the published hashes and the data directory.
  StatusView Status(uint32_t history, MonoTime now) const;
  std::vector<WorkerView> Workers(bool all, MonoTime now) const;

 private:
  absl::Status Renew(const Caller& caller, MonoTime now, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckFragment(FragmentId fragment) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckModel(const WorkerName& worker) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static absl::Status UnknownWorker(const WorkerName& worker);
  void RefreshGrant(Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteHeartbeat(const HeartbeatCall& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeEvaluations(const HeartbeatCall& call, MonoTime now, int64_t unix_ns, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void OpenRounds(const std::vector<FragmentLayout>& layouts, MonoTime now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<FragmentId> FinishCompleted(MonoTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Finished() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool BudgetSpent(const FragmentRound& fragment) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// What the policy goes by.
  RoundOptions Rules(const FragmentRound& fragment, const RoundView& view) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckOpenLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// "paused by ann: new disks"
  std::string ControlText() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// What an operator decided of this round; nullopt: nothing.
  std::optional<RoundDecision> ControlDecision(const FragmentRound& fragment) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<FragmentId> FinishEnding(MonoTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<FragmentId> FinishIdle(MonoTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// NotFound; FailedPrecondition when the action makes no sense now.
  absl::Status CheckAction(MemberAction action, const WorkerName& worker) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  WorkerEntry EntryLocked(const WorkerName& worker) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Of a worker that may be forgotten.
  void AddForgotten(const WorkerName& worker, MemberRecords& records) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Version NewestHead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(const WorkerName& worker, const std::string& why, MonoTime now, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Ban(const WorkerName& worker, const std::string& why, MonoTime now, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteOffences(const RoundRecord& record, MonoTime now, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BanByRule(const std::vector<OffenceTracker::Ban>& bans, MonoTime now, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RestoreOffences(const Recovery& recovery) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<PrivacyView> Privacy() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AnnounceEnd(MonoTime now, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool EvaluatorLeft() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Missed(FragmentRound& fragment, const Contribution& contribution, uint64_t claimed_position,
              const absl::Status& rejection, MonoTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FillPlan(const Member& member, const FragmentRound& fragment, Version version, MonoTime now,
                RoundPlanView& plan) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<WaitView> Waits(MonoTime now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Asked of workers: every third of the lease, or oftener.
  Duration Heartbeat() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::min(options_.heartbeat, config_->run.round.lease / 3);
  }
  absl::StatusOr<JoinResult> Admit(const JoinCall& call, MonoTime now, Effects& effects)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  JoinResult DescribeRun() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  JoinResult DescribeToObserver() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Its record is deleted, or the newest incarnation alone is kept of it: after a restart none may be issued
  /// twice.
  absl::Status ForgetOne(const WorkerName& name, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetOld(MonoTime now, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WatchForEvaluator(MonoTime now, Effects& effects) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AwaitsEvaluator() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<FragmentView> FragmentViews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  RunStateView State() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string StateReason() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string StorageError() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// How long this round was open before a trainer came to a run without one, if longer than a lease: no part
  /// of the run's speed.
  Duration Idle(const Round& round) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// Seconds of a closing round in which nobody worked on it; none: its open time says nothing of the pace.
  std::optional<double> IdleSeconds(const Round& round) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// For how long the open round of fragment 0 has been worked on; 0: not known.
  double WorkedSeconds(MonoTime now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  /// A write failed after the last version was published, and still fails.
  bool StandsStillForStorage() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string SeedReason() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint32_t PlannedWorkers(const FragmentRound& fragment, MonoTime now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  PushResult ArrivalsLocked(const FragmentRound& fragment, MonoTime now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CoordinatorStateOptions options_;

  mutable Mutex mutex_;
  CondVar acceptance_ended_;
  RunIdentity identity_ ABSL_GUARDED_BY(mutex_);
  bool acceptances_held_ ABSL_GUARDED_BY(mutex_) = false;
  ConfigPtr config_ ABSL_GUARDED_BY(mutex_);
  MemberRegistry members_ ABSL_GUARDED_BY(mutex_);
  RunStatistics statistics_ ABSL_GUARDED_BY(mutex_);
  SeedGrant grant_ ABSL_GUARDED_BY(mutex_);
  EvaluationAssignment evaluation_assignment_ ABSL_GUARDED_BY(mutex_);
  RejectedJoins rejected_joins_ ABSL_GUARDED_BY(mutex_);
  EventThrottle rejected_strangers_ ABSL_GUARDED_BY(mutex_);  // pushes under names that are no members'
  std::optional<MonoTime> no_evaluator_since_ ABSL_GUARDED_BY(mutex_);
  MonoTime evaluator_missed_ ABSL_GUARDED_BY(mutex_){};  // that was announced
  std::optional<Manifest> manifest_ ABSL_GUARDED_BY(mutex_);
  std::string manifest_hash_ ABSL_GUARDED_BY(mutex_);
  std::vector<FragmentRound> fragments_ ABSL_GUARDED_BY(mutex_);  // empty: not seeded
  MonoTime trained_since_ ABSL_GUARDED_BY(mutex_){};  // when a trainer last came to a run without one
  // Rounds of fragment 0 still to close with contributions that may be older than this coordinator.
  uint32_t untimed_rounds_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<MonoTime> finished_at_ ABSL_GUARDED_BY(mutex_);
  bool end_announced_ ABSL_GUARDED_BY(mutex_) = false;
  struct StorageFailure {
    std::string error;  // the latest
    MonoTime since;
  };
  std::map<std::string, StorageFailure> storage_errors_ ABSL_GUARDED_BY(mutex_);  // by kind of write
  std::string fault_ ABSL_GUARDED_BY(mutex_);
  ControlEntry control_ ABSL_GUARDED_BY(mutex_);
  OffenceTracker offences_ ABSL_GUARDED_BY(mutex_);
  std::vector<OffenceTracker::Ban> due_bans_
      ABSL_GUARDED_BY(mutex_);  // found by Restore, carried out by Tick
  PrivacyAccountant privacy_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_SERVER_RUN_COORDINATOR_STATE_H_

#include "server/run/coordinator_state.h"

#include <set>

namespace atl {

CoordinatorState::CoordinatorState(const CoordinatorStateOptions& options) : core_(options) {}

std::vector<FragmentId> CoordinatorState::Restore(const Recovery& recovery,
                                                  const std::vector<FragmentLayout>& layouts,
                                                  const std::vector<ConfigPtr>& round_configs, MonoTime now) {
  MutexLock lock(&core_.mutex);
  if (recovery.control) core_.control = *recovery.control;
  std::vector<WorkerEntry> workers = recovery.workers;
  if (!recovery.manifest) {
    // Whose model may seed the run is known from a Join only, and is not on disk: all of them join again.
    for (WorkerEntry& worker : workers) worker.departed = true;
  }
  member_actions_.ForgetStrays(core_.members.Restore(workers, recovery.partitions, now));
  if (core_.configs.run().inner.pace == InnerPace::kAdaptive)
    core_.members.assignments().LearnPace(recovery.rounds);
  core_.statistics.Restore(recovery.rounds, recovery.evaluations, layouts);
  member_actions_.RestoreOffences(recovery);
  for (const EvaluationEntry& evaluation : recovery.evaluations)
    core_.evaluation_assignment.Reported(evaluation.version);
  if (!recovery.manifest) return {};
  core_.model = RunModel(*recovery.manifest);
  core_.OpenRounds(layouts, now);
  // Workers went on while nobody closed rounds. Those that train on past a push do so into the round after
  // it.
  const bool in_step = core_.configs.run().sync.mode == SyncMode::kBlocking &&
                       core_.configs.run().round.mode == RoundMode::kBarrier;
  core_.training_time.Restored(in_step ? 1 : 2);
  RestoreRounds(recovery, round_configs, now);
  std::vector<FragmentId> done = progress_.FinishCompleted(now);
  const FragmentRound& first = core_.fragments.front();
  std::set<WorkerName> asked;
  const bool by_worker = core_.configs.run().evaluated_by == EvaluatedBy::kWorker;
  const WorkerRole role = by_worker ? WorkerRole::kTrainer : WorkerRole::kEvaluator;
  for (const WorkerEntry& worker : recovery.workers) {
    if (worker.role == static_cast<uint8_t>(role) && !worker.banned) asked.insert(worker.name);
  }
  core_.evaluation_assignment.Inherit(first.head(), first.finished(), asked);
  if (core_.Finished()) progress_.SetAnnounced(core_.evaluation_assignment.HasReport(first.head()));
  return done;
}

void CoordinatorState::RestoreRounds(const Recovery& recovery, const std::vector<ConfigPtr>& round_configs,
                                     MonoTime now) {
  for (const RoundRecord& record : recovery.rounds)
    core_.fragments[record.fragment.value()].Committed(record);
  for (const FragmentRecovery& found : recovery.fragments) {
    FragmentRound& fragment = core_.fragments[found.fragment.value()];
    fragment.stored = found.stored;
    fragment.Reopen(found.head, round_configs[found.fragment.value()], core_.members.membership(), now);
    for (const Contribution& contribution : found.accepted) {
      fragment.EndAccept(contribution, /*durable=*/true, now);
      core_.members.assignments().Accepted(contribution, contribution.samples_consumed, now);
    }
  }
}

std::vector<FragmentId> CoordinatorState::Restored(const EpochStart& start,
                                                   const std::vector<Version>& sources, MonoTime now,
                                                   Effects& effects) {
  MutexLock lock(&core_.mutex);
  core_.identity.epoch = start.epoch;
  core_.members.BeginEpoch(start.epoch, start.partitions);
  std::vector<RunStatistics::RestoredFragment> restored;
  for (const RoundRecord& record : start.records) {
    restored.push_back({record.fragment, record.version, sources[record.fragment.value()]});
  }
  core_.statistics.Restored(start.records.front().committed_tokens, restored);
  member_actions_.BeginEpoch();
  core_.fragments.clear();
  core_.OpenRounds(start.layouts, now);
  for (const RoundRecord& record : start.records) {
    FragmentRound& fragment = core_.fragments[record.fragment.value()];
    fragment.Committed(record);
    fragment.stored = record.version;
    fragment.Open(record.version, core_.members.membership(), now);
  }
  faults_.ClearFault();
  progress_.GoOn();
  effects.rounds_changed = true;
  return progress_.FinishCompleted(now);
}

void CoordinatorState::Tick(MonoTime now, Effects& effects) {
  MutexLock lock(&core_.mutex);
  member_calls_.ExpireLeases(now, effects);
  member_actions_.BanDue(now, effects);
  member_actions_.ForgetOld(now, effects);
  evaluations_.Watch(now, effects);
  core_.RefreshGrant(effects);
  progress_.AnnounceEnd(now, effects);
}

}  // namespace atl

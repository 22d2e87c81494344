#include "server/run/status_views.h"

#include <algorithm>
#include "server/members/member_lists.h"

namespace atl {
namespace {

RunState ToView(RunHealth health) {
  switch (health) {
    case RunHealth::kStarting:
      return RunState::kStarting;
    case RunHealth::kTraining:
      return RunState::kTraining;
    case RunHealth::kDegraded:
      return RunState::kDegraded;
    case RunHealth::kCritical:
      return RunState::kCritical;
    case RunHealth::kFinished:
      return RunState::kFinished;
  }
  return RunState::kStarting;
}

/// Whether the workers of a run in this state train.
bool Trains(RunState state) {
  return state != RunState::kFinished && state != RunState::kStopped && state != RunState::kPaused;
}

}  // namespace

RunState StatusViews::state() const {
  MutexLock lock(&core_.mutex);
  return State();
}

RunState StatusViews::State() const {
  if (core_.control.mode == RunMode::kStopped) return RunState::kStopped;
  if (core_.Finished()) return RunState::kFinished;
  if (!faults_.fault().empty()) return RunState::kCritical;
  if (core_.control.mode == RunMode::kPaused) return RunState::kPaused;
  if (core_.fragments.empty() && faults_.storage_errors().empty()) return RunState::kStarting;
  RunHealth worst = RunHealth::kStarting;
  for (const FragmentRound& fragment : core_.fragments) {
    if (!fragment.finished()) worst = std::max(worst, fragment.verdict.decision().health);
  }
  if (!faults_.storage_errors().empty()) worst = std::max(worst, RunHealth::kDegraded);
  return ToView(worst);
}

StatusViews::Numbers StatusViews::numbers() const {
  MutexLock lock(&core_.mutex);
  Numbers numbers{
      .active_trainers = static_cast<uint32_t>(core_.members.membership().live_count(WorkerRole::kTrainer)),
      .live_others = static_cast<uint32_t>(core_.members.membership().counts().live -
                                           core_.members.membership().live_count(WorkerRole::kTrainer)),
      .lost = static_cast<uint32_t>(core_.members.membership().counts().lost),
      .state = State(),
      .committed_tokens = core_.statistics.committed_tokens(),
      .total_tokens = core_.configs.run().total_tokens(),
      .storage_error = faults_.StorageError(),
      .fragments = {}};
  for (const FragmentRound& fragment : core_.fragments) {
    FragmentStatusView view;
    view.id = fragment.layout().id;
    view.version = fragment.head();
    view.stored = fragment.stored;
    numbers.fragments.push_back(std::move(view));
  }
  return numbers;
}

FragmentStatusView StatusViews::Fragment(const FragmentRound& fragment, MonoTime now) const {
  FragmentStatusView view;
  view.id = fragment.layout().id;
  view.version = fragment.head();
  view.stored = fragment.stored;
  view.elements = fragment.layout().elements;
  if (const Round* round = fragment.round(); round != nullptr) {
    const RoundView& open = round->View(now, core_.members.membership());
    view.open_seconds = ToSeconds(now - round->opened_at());
    for (const ArrivalView& arrival : open.arrived) view.arrived.push_back(arrival.worker);
    view.missing = open.expected;
    const RoundOptions rules = rounds_.Rules(fragment, open);
    view.deadline_seconds = ToSeconds(rules.deadline);
    view.quorum = static_cast<uint32_t>(QuorumCount(view.arrived.size() + view.missing.size(), rules));
    view.waiting_for =
        fragment.closing() ? "the round is closed and being committed" : fragment.verdict.decision().reason;
    if (fragment.verdict.decision().next_check && !fragment.closing()) {
      view.wait_ends_in_s = std::max(0.0, ToSeconds(*fragment.verdict.decision().next_check - now));
    }
  }
  return view;
}

StatusView StatusViews::Status(uint32_t history, MonoTime now) const {
  MutexLock lock(&core_.mutex);
  StatusView status;
  status.run_id = core_.identity.run_id;
  status.run_name = core_.identity.name;
  status.epoch = core_.identity.epoch;
  status.state = State();
  status.state_reason = waits_.StateReason();
  status.config_bytes = core_.configs.newest()->bytes;
  status.config_version = core_.configs.newest()->version;
  if (core_.model.known()) {
    status.parameters = core_.model.manifest().elements();
    status.tensors = static_cast<uint32_t>(core_.model.manifest().tensors.size());
  }
  status.storage_error = faults_.StorageError();
  status.live_trainers = static_cast<uint32_t>(core_.members.membership().live_count(WorkerRole::kTrainer));
  core_.statistics.Describe(history, status);
  // What the last rounds say holds while somebody goes on making rounds.
  if (status.live_trainers > 0 && Trains(status.state) && !StandsStillForStorage()) {
    const Round* round = core_.fragments.empty() ? nullptr : core_.fragments.front().round();
    const double worked = round == nullptr ? 0
                                           : core_.training_time.WorkedSeconds(
                                                 *round, core_.configs.run().round.lease, core_.members, now);
    const double pace = core_.statistics.Pace(worked);
    // A worker's own figure includes the time in which it had no coordinator.
    const double reported = core_.training_time.measured() ? ReportedPace(core_.members) : 0;
    status.tokens_per_second = pace > 0 ? pace : reported;
    status.eta_seconds = core_.statistics.EtaSeconds(pace);
  }
  for (const FragmentRound& fragment : core_.fragments) status.fragments.push_back(Fragment(fragment, now));
  status.waiting = waits_.Waits(now);
  status.privacy = core_.Privacy();
  status.refused_joins = core_.rejected_joins.Views(now);
  status.joins_refused = core_.rejected_joins.total();
  return status;
}

std::vector<WorkerView> StatusViews::Workers(bool all, MonoTime now) const {
  MutexLock lock(&core_.mutex);
  std::vector<WorkerView> views = WorkerViews(core_.members, all, now);
  const bool trains = Trains(State());
  for (WorkerView& view : views) {
    view.offences = core_.offences.Of(view.name);
    const Member* member = core_.members.membership().Find(view.name);
    if (!trains || member == nullptr || !member->live()) view.progress.tokens_per_second = 0;
  }
  return views;
}

bool StatusViews::StandsStillForStorage() const {
  if (core_.fragments.empty() || core_.fragments.front().round() == nullptr) return false;
  const MonoTime opened = core_.fragments.front().round()->opened_at();
  return std::ranges::any_of(faults_.storage_errors(),
                             [&](const auto& one) { return one.second.since >= opened; });
}

}  // namespace atl

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/human.h"
#include "server/run/coordinator_state.h"

// What the run shows of itself.

namespace atl {
namespace {

RunStateView ToView(RunHealth health) {
  switch (health) {
    case RunHealth::kStarting:
      return RunStateView::kStarting;
    case RunHealth::kTraining:
      return RunStateView::kTraining;
    case RunHealth::kDegraded:
      return RunStateView::kDegraded;
    case RunHealth::kCritical:
      return RunStateView::kCritical;
    case RunHealth::kFinished:
      return RunStateView::kFinished;
  }
  return RunStateView::kStarting;
}

/// Whether the workers of a run in this state train.
bool Trains(RunStateView state) {
  return state != RunStateView::kFinished && state != RunStateView::kStopped &&
         state != RunStateView::kPaused;
}

}  // namespace

std::vector<FragmentView> CoordinatorState::FragmentViews() const {
  std::vector<FragmentView> views;
  for (const FragmentRound& fragment : fragments_) {
    views.push_back(
        {.id = fragment.layout().id, .version = fragment.head(), .elements = fragment.layout().elements});
  }
  return views;
}

RunStateView CoordinatorState::State() const {
  if (control_.mode == RunMode::kStopped) return RunStateView::kStopped;
  if (Finished()) return RunStateView::kFinished;
  if (!fault_.empty()) return RunStateView::kCritical;
  if (control_.mode == RunMode::kPaused) return RunStateView::kPaused;
  if (fragments_.empty() && storage_errors_.empty()) return RunStateView::kStarting;
  RunHealth worst = RunHealth::kStarting;
  for (const FragmentRound& fragment : fragments_) {
    if (!fragment.finished()) worst = std::max(worst, fragment.decision.health);
  }
  if (!storage_errors_.empty()) worst = std::max(worst, RunHealth::kDegraded);
  return ToView(worst);
}

std::string CoordinatorState::StorageError() const {
  return storage_errors_.empty() ? std::string() : storage_errors_.begin()->second.error;
}

bool CoordinatorState::StandsStillForStorage() const {
  if (fragments_.empty() || fragments_.front().round() == nullptr) return false;
  const MonoTime opened = fragments_.front().round()->opened_at();
  return std::ranges::any_of(storage_errors_, [&](const auto& one) { return one.second.since >= opened; });
}

Duration CoordinatorState::Idle(const Round& round) const {
  const Duration alone = trained_since_ - round.opened_at();
  // Workers that return within a lease, as after a restart of the coordinator, have trained meanwhile.
  return alone > config_->run.round.lease ? alone : Duration(0);
}

std::optional<double> CoordinatorState::IdleSeconds(const Round& round) const {
  if (untimed_rounds_ > 0) return std::nullopt;
  std::vector<WorkerName> contributors;
  for (const Contribution& contribution : round.Contributions()) {
    contributors.push_back(contribution.key.worker);
  }
  // For a part of its time too few trained; how many of them, and for how long, the tokens do not say.
  if (members_.MostJoinedAfter(round.opened_at(), contributors)) return std::nullopt;
  return ToSeconds(Idle(round));
}

double CoordinatorState::WorkedSeconds(MonoTime now) const {
  const Round* round = fragments_.empty() ? nullptr : fragments_.front().round();
  if (round == nullptr || untimed_rounds_ > 0) return 0;
  MonoTime since = round->opened_at() + Idle(*round);
  const auto joined = members_.MostJoinedAfter(round->opened_at(), members_.Live(WorkerRole::kTrainer));
  if (joined) since = std::max(since, *joined);
  return ToSeconds(now - since);
}

std::string CoordinatorState::SeedReason() const {
  if (grant_.holder().empty()) return "waiting for a worker to join and seed the parameters";
  const uint32_t broken = grant_.aborted_uploads();
  return absl::StrFormat(
      "waiting for worker '%s' to seed the parameters%s", grant_.holder(),
      broken == 0 ? "" : absl::StrFormat("; its upload has broken off %s", Counted(broken, "time")));
}

std::string CoordinatorState::StateReason() const {
  if (control_.mode == RunMode::kStopped) return ControlText();
  if (!fault_.empty()) return fault_;
  if (!storage_errors_.empty()) return StorageError();
  if (control_.mode == RunMode::kPaused) return ControlText();
  if (fragments_.empty()) return SeedReason();
  if (Finished()) {
    if (end_announced_) return "the token budget is spent";
    return "the token budget is spent; waiting for the evaluation of the last version";
  }
  const FragmentRound* worst = nullptr;
  for (const FragmentRound& fragment : fragments_) {
    if (fragment.finished()) continue;
    if (worst == nullptr || fragment.decision.health > worst->decision.health) worst = &fragment;
  }
  return worst->closing() ? "merging: " + worst->decision.reason : worst->decision.reason;
}

std::string CoordinatorState::WaitingFor(FragmentId id) const {
  MutexLock lock(&mutex_);
  if (control_.mode != RunMode::kRunning) return ControlText();
  if (id.value() >= fragments_.size()) return SeedReason();
  const FragmentRound& fragment = fragments_[id.value()];
  if (!fault_.empty()) return fault_;
  if (!storage_errors_.empty()) return StorageError();
  return fragment.closing() ? "the round is closed and being committed" : fragment.decision.reason;
}

RunStateView CoordinatorState::state() const {
  MutexLock lock(&mutex_);
  return State();
}

CoordinatorState::Numbers CoordinatorState::numbers() const {
  MutexLock lock(&mutex_);
  Numbers numbers{
      .active_trainers = static_cast<uint32_t>(members_.membership().live_count(WorkerRole::kTrainer)),
      .live_others = members_.live_others(),
      .lost = members_.lost(),
      .state = State(),
      .committed_tokens = statistics_.committed_tokens(),
      .total_tokens = config_->run.total_tokens(),
      .storage_error = StorageError(),
      .fragments = {}};
  for (const FragmentRound& fragment : fragments_) {
    FragmentStatusView view;
    view.id = fragment.layout().id;
    view.version = fragment.head();
    view.stored = fragment.stored;
    numbers.fragments.push_back(std::move(view));
  }
  return numbers;
}

StatusView CoordinatorState::Status(uint32_t history, MonoTime now) const {
  MutexLock lock(&mutex_);
  StatusView status;
  status.run_id = identity_.run_id;
  status.run_name = identity_.name;
  status.epoch = identity_.epoch;
  status.state = State();
  status.state_reason = StateReason();
  status.config_bytes = config_->bytes;
  status.config_version = config_->version;
  status.parameters = manifest_ ? manifest_->elements() : 0;
  status.storage_error = StorageError();
  status.live_trainers = static_cast<uint32_t>(members_.membership().live_count(WorkerRole::kTrainer));
  statistics_.Describe(history, status);
  // What the last rounds say holds while somebody goes on making rounds.
  if (status.live_trainers > 0 && Trains(status.state) && !StandsStillForStorage()) {
    const double pace = statistics_.Pace(WorkedSeconds(now));
    // A worker's own figure includes the time in which it had no coordinator.
    const double reported = untimed_rounds_ > 0 ? 0 : members_.ReportedPace();
    status.tokens_per_second = pace > 0 ? pace : reported;
    status.eta_seconds = statistics_.EtaSeconds(pace);
  }
  for (const FragmentRound& fragment : fragments_) {
    FragmentStatusView view;
    view.id = fragment.layout().id;
    view.version = fragment.head();
    view.stored = fragment.stored;
    view.elements = fragment.layout().elements;
    if (const Round* round = fragment.round(); round != nullptr) {
      const RoundView open = round->View(now, members_.membership());
      view.open_seconds = ToSeconds(now - round->opened_at());
      for (const ArrivalView& arrival : open.arrived) view.arrived.push_back(arrival.worker);
      view.missing = open.expected;
      const RoundOptions rules = Rules(fragment, open);
      view.deadline_seconds = ToSeconds(rules.deadline);
      view.quorum = static_cast<uint32_t>(QuorumCount(view.arrived.size() + view.missing.size(), rules));
      view.waiting_for =
          fragment.closing() ? "the round is closed and being committed" : fragment.decision.reason;
      if (fragment.decision.next_check && !fragment.closing()) {
        view.wait_ends_in_s = std::max(0.0, ToSeconds(*fragment.decision.next_check - now));
      }
    }
    status.fragments.push_back(std::move(view));
  }
  status.waiting = Waits(now);
  status.privacy = Privacy();
  status.refused_joins = rejected_joins_.Views(now);
  status.joins_refused = rejected_joins_.total();
  return status;
}

std::optional<PrivacyView> CoordinatorState::Privacy() const {
  const PrivacyOptions& options = config_->run.privacy;
  if (!options.enabled()) return std::nullopt;
  PrivacyView view{.options = options, .epsilon = std::nullopt, .published_epsilon = std::nullopt};
  if (!options.noisy() || privacy_.without_noise()) return view;
  view.epsilon = EpsilonOf(privacy_.local_rho(), options.delta);
  if (!IsFixedSum(config_->run.merge)) return view;
  if (const auto published = privacy_.published_rho()) {
    view.published_epsilon = EpsilonOf(*published, options.delta);
  }
  return view;
}

std::vector<WorkerView> CoordinatorState::Workers(bool all, MonoTime now) const {
  MutexLock lock(&mutex_);
  std::vector<WorkerView> views = members_.Views(all, now);
  const bool trains = Trains(State());
  for (WorkerView& view : views) {
    view.offences = offences_.Of(view.name);
    const Member* member = members_.membership().Find(view.name);
    if (!trains || member == nullptr || !member->live()) view.progress.tokens_per_second = 0;
  }
  return views;
}

}  // namespace atl

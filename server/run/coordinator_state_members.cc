#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/planted_defect.h"
#include "common/status.h"
#include "server/rejection.h"
#include "server/run/coordinator_state.h"

// Members: Join, Heartbeat, Leave, the passing of time.

namespace atl {
namespace {

// Names at one tick: what they cost the disk is spread over time.
constexpr size_t kForgottenAtOnce = 1000;

std::string LastPushText(const WorkerAccount& account) {
  if (account.last_pushes.empty()) return "it had nothing to push";
  for (const auto& [fragment, push] : account.last_pushes) {
    if (push.counted) continue;
    return absl::StrFormat("its last push, on version %d of fragment %d, came too late and does not count",
                           push.base.value(), fragment.value());
  }
  const auto& [fragment, push] = *account.last_pushes.begin();
  return absl::StrFormat("its last push, on version %d of fragment %d, counted", push.base.value(),
                         fragment.value());
}

}  // namespace

JoinResult CoordinatorState::DescribeRun() const {
  // Who joins trains on the open round, and hears of a newer configuration with the plan of the next. It must
  // not be older than what the plan of any fragment names: its worker would ask again and again.
  const auto newest = std::ranges::max_element(
      fragments_, {}, [](const FragmentRound& fragment) { return fragment.config().version; });
  const ConfigSnapshot& config = newest == fragments_.end() ? *config_ : newest->config();
  JoinResult result;
  result.run_id = identity_.run_id;
  result.epoch = identity_.epoch;
  result.lease = config_->run.round.lease;
  result.heartbeat = Heartbeat();
  result.config_bytes = config.bytes;
  result.config_version = config.version;
  result.manifest_hash = manifest_hash_;
  result.fragments = FragmentViews();
  result.state = State();
  result.committed_tokens = statistics_.committed_tokens();
  result.total_tokens = config_->run.total_tokens();
  return result;
}

JoinResult CoordinatorState::DescribeToObserver() const {
  JoinResult result = DescribeRun();
  result.incarnation = kObserverIncarnation;
  result.manifest = manifest_;
  return result;
}

absl::StatusOr<JoinResult> CoordinatorState::Join(const JoinCall& call, MonoTime now, Effects& effects) {
  MutexLock lock(&mutex_);
  auto joined = Admit(call, now, effects);
  if (joined.ok() || call.role == WorkerRole::kObserver) return joined;
  effects.joins_refused.push_back(ReasonText(joined.status()));
  if (!rejected_joins_.Note(call.worker, call.address, joined.status(), now)) return joined;
  effects.Event(
      EventKind::kJoinRefused, call.worker,
      absl::StrFormat("a worker is refused%s: %s", call.address.empty() ? "" : " (from " + call.address + ")",
                      std::string(joined.status().message())));
  return joined;
}

absl::StatusOr<JoinResult> CoordinatorState::Admit(const JoinCall& call, MonoTime now, Effects& effects) {
  ATOLL_RETURN_IF_ERROR(members_.EnterJoin(call, now));
  ATOLL_RETURN_IF_ERROR(members_.CheckJoin(call, manifest_hash_, now));
  // Who has yet to build the model asks for the configuration only: nobody waits for it, and it has no life
  // that a second Join would supersede.
  if (call.role == WorkerRole::kObserver) return DescribeToObserver();
  if (call.manifest_hash.empty()) return DescribeRun();

  const bool deserted = members_.membership().live_count(WorkerRole::kTrainer) == 0;
  ATOLL_ASSIGN_OR_RETURN(const JoinOutcome outcome, members_.Join(call, now));
  rejected_joins_.Joined(call.worker);
  if (outcome.partition_from) effects.members.push_back(*outcome.partition_from);
  effects.members.push_back(call.worker);
  effects.Event(outcome.returning ? EventKind::kWorkerReturned : EventKind::kWorkerJoined, call.worker,
                absl::StrFormat("%s '%s' %s", std::string(WorkerRoleName(call.role)), call.worker,
                                outcome.returning ? "is back" : "joined"));
  effects.rounds_changed = true;
  if (call.role == WorkerRole::kTrainer) {
    if (deserted) trained_since_ = now;
    for (FragmentRound& fragment : fragments_) {
      if (fragment.round()) fragment.round()->Joined(call.worker, now, members_.membership());
    }
  }
  RefreshGrant(effects);

  JoinResult result = DescribeRun();
  result.incarnation = outcome.incarnation;
  result.returning = outcome.returning;
  result.seed_granted = !manifest_ && grant_.HeldBy(call.worker);
  if (outcome.partition) result.data = members_.Partition(*members_.membership().Find(call.worker));
  for (const FragmentRound& fragment : fragments_) {
    if (fragment.round() == nullptr) continue;
    for (const Contribution& contribution : fragment.round()->Contributions()) {
      if (contribution.key.worker == call.worker) result.accepted.push_back(contribution.key);
    }
  }
  return result;
}

absl::StatusOr<HeartbeatResult> CoordinatorState::Heartbeat(const HeartbeatCall& call, MonoTime now,
                                                            int64_t unix_ns, Effects& effects) {
  MutexLock lock(&mutex_);
  if (call.caller.observes()) {
    ATOLL_RETURN_IF_ERROR(members_.CheckRun(call.caller));
    return HeartbeatResult{.lease = config_->run.round.lease, .state = State(), .fragments = FragmentViews()};
  }
  ATOLL_RETURN_IF_ERROR(Renew(call.caller, now, effects));
  NoteHeartbeat(call);
  TakeEvaluations(call, now, unix_ns, effects);
  RefreshGrant(effects);
  return HeartbeatResult{.lease = config_->run.round.lease,
                         .state = State(),
                         .fragments = FragmentViews(),
                         .seed_granted = !manifest_ && grant_.HeldBy(call.caller.worker),
                         .command = members_.account(call.caller.worker).command.command,
                         .at_once = members_.account(call.caller.worker).command.at_once};
}

void CoordinatorState::NoteHeartbeat(const HeartbeatCall& call) {
  const WorkerName& worker = call.caller.worker;
  members_.account(worker).progress = call.progress;
  if (call.capabilities) members_.account(worker).capabilities = *call.capabilities;
  const WorkerRole role = members_.membership().Find(worker)->role;
  const WorkerPhaseView phase = call.progress.phase;
  const bool computing = phase == WorkerPhaseView::kTraining || phase == WorkerPhaseView::kEvaluating ||
                         phase == WorkerPhaseView::kPushing;
  if (role == WorkerRole::kTrainer && computing) {
    // After a restart of the coordinator nobody has pulled, as far as the new rounds know; who computes on
    // the base is waited for all the same.
    // Overlapped fragments have versions of their own, and whoever computes is on its way to each of them.
    const bool overlapped = config_->run.sync.mode == SyncMode::kOverlapped;
    for (FragmentRound& fragment : fragments_) {
      const bool on_base = overlapped || fragment.head() == call.progress.base;
      if (fragment.round() && on_base) fragment.round()->Pulled(worker);
    }
  }
}

void CoordinatorState::TakeEvaluations(const HeartbeatCall& call, MonoTime now, int64_t unix_ns,
                                       Effects& effects) {
  const WorkerName& worker = call.caller.worker;
  for (const EvaluationView& evaluation : call.evaluations) {
    const EvaluationWorth worth = evaluation_assignment_.Weigh(worker, evaluation.version);
    if (worth == EvaluationWorth::kKnown) continue;
    const bool plausible = evaluation.loss > 0 && IsPlausibleLoss(evaluation.loss);
    if (worth == EvaluationWorth::kUnasked || !plausible) {
      if (!evaluation_assignment_.NoteIgnored(now)) continue;
      effects.Event(EventKind::kUnknown, worker,
                    absl::StrFormat("a validation loss of %g for version %d from worker '%s' is ignored: %s "
                                    "(%d ignored so far)",
                                    evaluation.loss, evaluation.version.value(), worker,
                                    plausible ? "the worker was not asked to evaluate this version"
                                              : "a loss is above 0 and at most 10000 nats per token",
                                    evaluation_assignment_.ignored()));
      continue;
    }
    EvaluationView timed = evaluation;
    timed.unix_ns = unix_ns;
    statistics_.AddEvaluation(timed);
    evaluation_assignment_.Reported(evaluation.version);
    effects.evaluations.push_back({.fragment = FragmentId(0),
                                   .version = evaluation.version,
                                   .loss = evaluation.loss,
                                   .tokens = evaluation.tokens,
                                   .unix_ns = unix_ns});
    effects.Event(
        EventKind::kEvaluated, worker,
        absl::StrFormat("version %d has validation loss %.4f", evaluation.version.value(), evaluation.loss));
    effects.events.back().version = evaluation.version;
    effects.events.back().evaluation = evaluation;
  }
}

absl::Status CoordinatorState::Leave(const Caller& caller, const std::string& reason, MonoTime now,
                                     Effects& effects) {
  MutexLock lock(&mutex_);
  if (caller.observes()) return members_.CheckRun(caller);
  ATOLL_RETURN_IF_ERROR(members_.Check(caller));
  ATOLL_RETURN_IF_ERROR(members_.membership().Leave(caller.worker, caller.incarnation, now));
  members_.assignments().Left(caller.worker);
  effects.members.push_back(caller.worker);
  PendingCommand& command = members_.account(caller.worker).command;
  if (command.command == CommandView::kDrain) {
    members_.NoteDrained(caller.worker);
    effects.Event(EventKind::kWorkerDrained, caller.worker,
                  absl::StrFormat("worker '%s' has drained: %s", caller.worker,
                                  LastPushText(members_.account(caller.worker))));
  }
  command = PendingCommand{};
  effects.Event(EventKind::kWorkerLeft, caller.worker,
                absl::StrFormat("worker '%s' left%s", caller.worker, reason.empty() ? "" : ": " + reason));
  effects.rounds_changed = true;
  RefreshGrant(effects);
  AnnounceEnd(now, effects);
  return absl::OkStatus();
}

void CoordinatorState::Tick(MonoTime now, Effects& effects) {
  MutexLock lock(&mutex_);
  const bool nobody_expires = Planted(PlantedDefect::kWaitsForTheDead);
  for (const WorkerName& lost :
       nobody_expires ? std::vector<WorkerName>() : members_.membership().Expire(now)) {
    effects.members.push_back(lost);
    effects.Event(
        EventKind::kWorkerLost, lost,
        absl::StrFormat("worker '%s' was silent for %.1f s; it is not waited for until it comes back", lost,
                        ToSeconds(config_->run.round.lease)));
    effects.rounds_changed = true;
  }
  BanByRule(std::exchange(due_bans_, {}), now, effects);
  ForgetOld(now, effects);
  WatchForEvaluator(now, effects);
  RefreshGrant(effects);
  AnnounceEnd(now, effects);
}

void CoordinatorState::WatchForEvaluator(MonoTime now, Effects& effects) {
  if (!AwaitsEvaluator()) {
    no_evaluator_since_.reset();
    return;
  }
  if (!no_evaluator_since_) no_evaluator_since_ = now;
  // One that is starting, or back from a restart, gets a lease's time. Once for each time that there is none.
  const MonoTime due = *no_evaluator_since_ + config_->run.round.lease;
  if (now < due || due == evaluator_missed_) return;
  evaluator_missed_ = due;
  effects.Event(EventKind::kUnknown, "",
                "no version is evaluated: evaluation.by is 'evaluator' and none has joined; start one with "
                "atoll-worker --role evaluator, or set evaluation.by to worker");
}

void CoordinatorState::ForgetOld(MonoTime now, Effects& effects) {
  for (WorkerName& name : members_.TakeStrayNames()) effects.forgotten.push_back(std::move(name));
  const Duration age = config_->run.forget_workers_after;
  if (age == Duration(0)) return;
  for (const WorkerName& name : members_.Forgettable(age, kForgottenAtOnce, now)) {
    (void)ForgetOne(name, effects);
  }
}

std::string CoordinatorState::PublicKey(const WorkerName& worker) const {
  MutexLock lock(&mutex_);
  return members_.PublicKey(worker);
}

std::optional<WorkerEntry> CoordinatorState::Entry(const WorkerName& name) const {
  MutexLock lock(&mutex_);
  if (members_.membership().Find(name) == nullptr) return std::nullopt;
  return EntryLocked(name);
}

bool CoordinatorState::EvaluatorLeft() const {
  const bool by_worker = config_->run.evaluated_by == EvaluatedBy::kWorker;
  const Version last = fragments_.front().head();
  if (!by_worker) return members_.Live(WorkerRole::kEvaluator).empty();
  const std::vector<WorkerName> live = members_.Live(WorkerRole::kTrainer);
  const WorkerName holder = evaluation_assignment_.Holder(last);
  return live.empty() || (!holder.empty() && std::ranges::find(live, holder) == live.end());
}

void CoordinatorState::AnnounceEnd(MonoTime now, Effects& effects) {
  if (end_announced_ || !Finished()) return;
  const Version last = fragments_.front().head();
  const bool evaluated = evaluation_assignment_.HasReport(last);
  if (!evaluated && !EvaluatorLeft() && now < *finished_at_ + options_.final_evaluation_wait) return;
  end_announced_ = true;
  effects.Event(EventKind::kRunFinished, "",
                absl::StrFormat("the run is %s at version %d with %d tokens%s",
                                control_.mode == RunMode::kStopped ? "stopped" : "finished", last.value(),
                                statistics_.committed_tokens(),
                                evaluated ? "" : "; its last version was not evaluated"));
  effects.events.back().version = last;
}

}  // namespace atl

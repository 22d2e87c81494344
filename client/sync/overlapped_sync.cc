#include "client/sync/overlapped_sync.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "client/sync/command_check.h"
#include "client/sync/evaluation.h"
#include "client/sync/rejection.h"
#include "client/sync/seeding.h"
#include "common/status.h"
#include "core/schedule.h"

namespace atl {
namespace {

/// How often waits of exchanges that are of no use any more are ended.
constexpr Duration kFinishLook = Seconds(0.1);

/// How long a command may go unnoticed while answers are waited for.
constexpr Duration kLook = Seconds(0.1);

}  // namespace

OverlappedSync::OverlappedSync(const OuterSyncOptions& options, const Parts& parts,
                               const std::vector<FragmentLayout>& layout, const ResumeState& resume_state,
                               const WorkerContext& context)
    : parts_(parts),
      layout_(layout),
      resume_state_(resume_state),
      context_(context),
      push_journal_(resume_state.checkpoint, context),
      encoders_(MakeEncoders(parts.session->info().run, layout, *parts.replica)),
      state_(parts.session->info().run, parts.session->info().config_version,
             DataCursor(parts.session, parts.replica, context), DivergenceGuard(options, context)),
      pusher_(&state_, parts.session, parts.replica, parts.runner, resume_state, context),
      adopter_(&state_, parts.replica, context),
      rejoin_(parts.session, parts.runner) {
  context_.worker_status->HideLosses(state_.run.privacy.noisy());
}

absl::StatusOr<SyncEnd> OverlappedSync::Run() {
  auto end = Loop();
  parts_.setting->GiveUp();
  const bool goes_on = end.ok() ? *end == SyncEnd::kReconfigured
                                : RejectionReasonOf(end.status()) == RejectionReason::kWrongEpoch;
  // Nobody wants the awaited versions any more. A worker that starts again pulls again, so only the waits
  // of now are ended, and again those that had just begun.
  CoordinatorConnection& connection = *parts_.session->connection();
  if (!goes_on) connection.CancelPulls();
  do {
    connection.EndPulls();
  } while (!parts_.runner->Finish(kFinishLook));
  NoteUnpacked();
  return end;
}

void OverlappedSync::NoteUnpacked() {
  const WorkerCommands commands = context_.worker_status->commands();
  if (!commands.drain || !commands.stop) return;
  for (const auto& fragment : state_.fragments) {
    // What was encoded is in the journal.
    if (fragment->window.steps == 0 || fragment->exchange->unacknowledged()) continue;
    context_.worker_status->push_outcomes().Note(
        {.fragment = fragment->base.layout.id, .base = *fragment->base.version}, PushOutcome::kUnpacked);
  }
}

absl::StatusOr<SyncEnd> OverlappedSync::Loop() {
  MaybeEnd end;
  {
    Delivery delivery(parts_.session, parts_.retry_policy, context_);
    ATOLL_RETURN_IF_ERROR(push_journal_.TakeUp(layout_, encoders_, parts_.session->info(),
                                               state_.data.partition(), delivery, *parts_.replica));
    ParameterPuller puller(parts_.session, parts_.replica, layout_, context_);
    ATOLL_ASSIGN_OR_RETURN(end, Begin(puller));
    if (end.has_value()) return *end;
    TakeOver(std::move(puller).TakeFragments());
  }
  ATOLL_RETURN_IF_ERROR(adopter_.NoteFirst(state_.schedule->now()));
  BeginOptimizerWarmup(resume_state_, state_.run, state_.first().base.plan, context_);
  EnterPhase(context_, WorkerPhase::kTraining);
  state_.round_began = context_.clock->Now();
  for (const auto& fragment : state_.fragments) {
    if (fragment->encoder->IsDone(*fragment->base.version)) pusher_.AskForAnswer(*fragment);
  }
  while (!end.has_value()) {
    ATOLL_ASSIGN_OR_RETURN(end, Turn());
  }
  return *end;
}

absl::StatusOr<OverlappedSync::MaybeEnd> OverlappedSync::Begin(ParameterPuller& puller) {
  while (true) {
    ATOLL_ASSIGN_OR_RETURN(const auto outcome, puller.Advance(ParameterPuller::Until::kHead));
    if (outcome == ParameterPuller::Outcome::kAdopted) return MaybeEnd();
    const WorkerCommands commands = context_.worker_status->commands();
    if (commands.stop) return SyncEnd::kStopped;
    if (commands.run_stopped) return SyncEnd::kRunStopped;
    if (outcome == ParameterPuller::Outcome::kFinished) return SyncEnd::kFinished;
    if (commands.drain) return EndOfDrain(commands);
    context_.worker_status->Done(&WorkerCommands::resync);
    if (commands.seed_granted && !puller.fragments().front().version.has_value()) {
      ATOLL_RETURN_IF_ERROR(
          UseSeedGrant(*parts_.session, *parts_.replica, layout_, *parts_.retry_policy, context_));
    }
  }
}

void OverlappedSync::TakeOver(std::vector<FragmentBase> bases) {
  MarkAccepted(parts_.session->info().accepted, bases, encoders_);
  for (FragmentBase& base : bases) {
    auto& fragment = *state_.fragments.emplace_back(std::make_unique<StreamedFragment>(std::move(base)));
    fragment.encoder = &encoders_[fragment.index()];
    fragment.exchange = std::make_unique<FragmentExchange>(FragmentExchange::Parts{
        .base = &fragment.base,
        .encoder = fragment.encoder,
        .push_journal = &push_journal_,
        .resume_state = &resume_state_,
        .worker_status = context_.worker_status,
        .runner = parts_.runner,
        .pull = PullEncoding::Of(state_.run),
    });
    fragment.finished = fragment.base.plan.committed_tokens >= fragment.base.plan.total_tokens;
    // Set between the description of the run and this pull.
    state_.reconfigured |= fragment.base.plan.config_version > state_.config_version;
  }
  state_.schedule = std::make_unique<FragmentSchedule>(state_.first().base.plan.inner_steps,
                                                       static_cast<uint32_t>(state_.fragments.size()),
                                                       state_.run.sync.delay_steps);
  state_.pushed_position = parts_.replica->samples_consumed();
}

absl::StatusOr<OverlappedSync::MaybeEnd> OverlappedSync::Turn() {
  ATOLL_RETURN_IF_ERROR(adopter_.UseAnswers());
  ATOLL_ASSIGN_OR_RETURN(const MaybeEnd end, EndOfTurn());
  if (end.has_value()) return end;
  if (state_.to_evaluate.has_value() && !state_.evaluate_last) {
    ATOLL_RETURN_IF_ERROR(EvaluateBases(*std::exchange(state_.to_evaluate, std::nullopt)));
  }
  ATOLL_ASSIGN_OR_RETURN(const bool more, Step());
  if (!more) return MaybeEnd();  // the next turn leaves
  // What came meanwhile need not be passed over.
  ATOLL_RETURN_IF_ERROR(adopter_.UseAnswers());
  // A round of a newer configuration may refuse what is encoded by this one, and the fragment would never go
  // on: the configuration changes first, at the end of this turn.
  if (!state_.reconfigured) ATOLL_RETURN_IF_ERROR(pusher_.PushDue());
  return MaybeEnd();
}

absl::StatusOr<bool> OverlappedSync::Step() {
  const uint32_t active = std::max<uint32_t>(state_.first().base.plan.active_workers, 1);
  const auto ahead = static_cast<uint32_t>(state_.schedule->now() - state_.committed_at);
  const double tokens = TokensAtStep(state_.run, state_.committed_tokens, ahead, active);
  const double rate = LearningRateAt(state_.run, SchedulePosition(state_.run, tokens));
  InnerRound& first = state_.first().window;
  const double loss_before = first.loss_sum;
  const Duration compute_before = first.compute;
  const auto step =
      TakeInnerStep(*parts_.replica, rate, *resume_state_.optimizer_warmup, first, context_, OverdueShare());
  if (IsNoMoreSteps(step.status())) {
    context_.worker_status->RequestDrain();
    return false;
  }
  if (IsNotFinite(step.status())) {
    ATOLL_RETURN_IF_ERROR(adopter_.DropWindows(step.status()));
    return true;
  }
  ATOLL_RETURN_IF_ERROR(step.status());
  state_.schedule->StepTaken();
  state_.computed += first.compute - compute_before;
  for (size_t i = 1; i < state_.fragments.size(); ++i) {
    InnerRound& window = state_.fragments[i]->window;
    window.steps += 1;
    window.tokens += step->tokens;
    window.loss_sum += first.loss_sum - loss_before;
  }
  return true;
}

double OverlappedSync::OverdueShare() const {
  double held = 0;
  double all = 0;
  for (const auto& fragment : state_.fragments) {
    if (fragment->left_behind()) continue;
    all += 1;
    if (fragment->window.steps >= state_.schedule->steps()) held += 1;
  }
  return all > 0 ? held / all : 0;
}

absl::Status OverlappedSync::EvaluateBases(const EvaluationOrder& order) {
  const Spending spending(context_.time, TimeUse::kEvaluate);
  std::vector<std::vector<float>> aside(state_.fragments.size());  // the local parameters
  for (size_t i = 0; i < state_.fragments.size(); ++i) {
    const FragmentBase& base = state_.fragments[i]->base;
    aside[i].resize(base.layout.elements);
    ATOLL_RETURN_IF_ERROR(parts_.replica->ReadFragment(base.layout, aside[i]));
    ATOLL_RETURN_IF_ERROR(parts_.replica->WriteFragment(base.layout, base.values));
  }
  ATOLL_RETURN_IF_ERROR(EvaluateVersion(*parts_.replica, order, state_.run, *parts_.heartbeater, context_));
  for (size_t i = 0; i < state_.fragments.size(); ++i) {
    ATOLL_RETURN_IF_ERROR(parts_.replica->WriteFragment(state_.fragments[i]->base.layout, aside[i]));
  }
  EnterPhase(context_, WorkerPhase::kTraining);
  return absl::OkStatus();
}

absl::StatusOr<OverlappedSync::MaybeEnd> OverlappedSync::EndOfTurn() {
  if (state_.guard.hopeless()) return SyncEnd::kDiverged;
  if (state_.AllFinished()) {
    if (state_.to_evaluate.has_value()) ATOLL_RETURN_IF_ERROR(EvaluateBases(*state_.to_evaluate));
    return EndOfRun(context_.worker_status->commands());
  }
  if (state_.reconfigured) return Flush(SyncEnd::kReconfigured);
  ATOLL_ASSIGN_OR_RETURN(
      const bool interrupted,
      CommandEndsSteps([this](const WorkerCommands& commands) { return rejoin_.Check(commands); }, context_));
  if (interrupted || context_.worker_status->commands().drain) return FollowCommands();
  return MaybeEnd();
}

absl::StatusOr<OverlappedSync::MaybeEnd> OverlappedSync::FollowCommands() {
  const WorkerCommands commands = context_.worker_status->commands();
  if (commands.stop) return SyncEnd::kStopped;
  if (commands.run_stopped) return SyncEnd::kRunStopped;
  if (commands.resync) {
    ATOLL_RETURN_IF_ERROR(Resync());
    return MaybeEnd();
  }
  if (!commands.drain) return MaybeEnd();
  if (commands.at_once || commands.paused) {
    // Who leaves waits for no version any more, and the channels are needed.
    parts_.session->connection()->CancelPulls();
    return Flush(EndOfDrain(commands));
  }
  if (!state_.leaving) {
    context_.log.Info("leaves when every fragment has been pushed once more");
    state_.leaving = true;
  }
  return state_.AllLeftBehind() ? AwaitAcknowledgments(EndOfDrain(commands)) : MaybeEnd();
}

absl::StatusOr<OverlappedSync::MaybeEnd> OverlappedSync::Flush(SyncEnd end) {
  state_.flushing = true;
  parts_.setting->StopWaiting();
  EnterPhase(context_, WorkerPhase::kPushing);
  for (const auto& fragment : state_.fragments) {
    while (true) {
      // A round that has the new configuration already would refuse what is measured by the old one.
      const bool newer =
          end == SyncEnd::kReconfigured && fragment->base.plan.config_version > state_.config_version;
      const bool nothing = fragment->window.steps == 0 || fragment->exchange->away() || newer;
      if (nothing || fragment->left_behind()) break;
      ATOLL_ASSIGN_OR_RETURN(const bool pushed, pusher_.Push(*fragment));
      if (pushed) break;
      if (context_.worker_status->commands().stop) return SyncEnd::kStopped;
      {
        const Spending spending(context_.time, TimeUse::kPush);
        parts_.runner->AwaitChange(kLook);
      }
      ATOLL_RETURN_IF_ERROR(adopter_.UseAnswers());
    }
  }
  return AwaitAcknowledgments(end);
}

absl::StatusOr<OverlappedSync::MaybeEnd> OverlappedSync::AwaitAcknowledgments(SyncEnd end) {
  const Spending spending(context_.time, TimeUse::kPush);
  const auto open = [](const auto& fragment) { return fragment->exchange->unacknowledged(); };
  if (std::ranges::any_of(state_.fragments, open)) {
    // The exchanges show their own waits to nobody: this thread did not wait for them until now.
    EnterPhase(context_, WorkerPhase::kPushing, "the coordinator, to acknowledge the last pushes");
  }
  while (std::ranges::any_of(state_.fragments, open)) {
    if (context_.worker_status->commands().stop) return SyncEnd::kStopped;
    parts_.runner->AwaitChange(kLook);
    ATOLL_RETURN_IF_ERROR(adopter_.UseAnswers());
  }
  return end;
}

absl::Status OverlappedSync::Resync() {
  context_.log.Info("ordered to drop local progress and pull the head");
  context_.worker_status->Done(&WorkerCommands::resync);
  EnterPhase(context_, WorkerPhase::kPulling);
  for (const auto& fragment : state_.fragments) {
    if (fragment->finished) continue;
    fragment->take_as_published = true;
    if (fragment->exchange->away()) continue;
    ATOLL_RETURN_IF_ERROR(adopter_.Use(*fragment, fragment->exchange->PullHead()));
    fragment->window = InnerRound();
  }
  EnterPhase(context_, WorkerPhase::kTraining);
  return absl::OkStatus();
}

}  // namespace atl

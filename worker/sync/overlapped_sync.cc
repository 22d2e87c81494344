#include "worker/sync/overlapped_sync.h"

#include <algorithm>
#include <utility>

#include "common/status.h"
#include "core/schedule.h"
#include "worker/sync/rejection.h"
#include "worker/sync/seeding.h"

namespace atl {
namespace {

/// How often waits of exchanges that are of no use any more are ended.
constexpr Duration kFinishLook = Seconds(0.1);

}  // namespace

OverlappedSync::OverlappedSync(const OuterSyncOptions& options, const Parts& parts,
                               const std::vector<FragmentLayout>& layout, const ResumeState& resume_state,
                               const WorkerContext& context)
    : options_(options),
      parts_(parts),
      layout_(layout),
      resume_state_(resume_state),
      context_(context),
      run_(parts.session->info().run),
      config_version_(parts.session->info().config_version),
      push_journal_(resume_state.checkpoint, context) {
  for (const FragmentLayout& fragment : layout) encoders_.emplace_back(run_, fragment.elements);
  if (parts.session->info().data.has_value()) partition_ = parts.session->info().data->partition;
  context_.worker_status->HideLosses(run_.privacy.noisy());
}

OverlappedSync::~OverlappedSync() = default;

absl::StatusOr<SyncEnd> OverlappedSync::Run() {
  auto end = Loop();
  parts_.setting->GiveUp();
  const bool goes_on = end.ok() ? *end == SyncEnd::kReconfigured
                                : RejectionReasonOf(end.status()) == RejectionReason::kWrongEpoch;
  // Nobody wants the versions that are waited for. A worker that begins anew pulls again, so only the waits
  // of now are ended, and again those that had just begun.
  CoordinatorConnection& connection = *parts_.session->connection();
  if (!goes_on) connection.CancelPulls();
  do {
    connection.EndPulls();
  } while (!parts_.runner->Finish(kFinishLook));
  return end;
}

absl::StatusOr<SyncEnd> OverlappedSync::Loop() {
  MaybeEnd end;
  {
    Delivery delivery(parts_.session, parts_.retry_policy, context_);
    ATOLL_RETURN_IF_ERROR(push_journal_.TakeUp(layout_, encoders_, parts_.session->info(), partition_,
                                               delivery, *parts_.replica));
    ParameterPuller puller(parts_.session, parts_.replica, layout_, context_);
    ATOLL_ASSIGN_OR_RETURN(end, Begin(puller));
    if (end.has_value()) return *end;
    TakeOver(std::move(puller).TakeFragments());
  }
  ATOLL_RETURN_IF_ERROR(NoteFirst(*fragments_.front(), schedule_->now()));
  BeginOptimizerWarmup(resume_state_, run_, fragments_.front()->base.plan, context_);
  EnterPhase(context_, WorkerPhase::kTraining);
  round_began_ = context_.clock->Now();
  for (const auto& fragment : fragments_) {
    if (fragment->encoder->IsDone(*fragment->base.version)) AskForAnswer(*fragment);
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
    if (commands.drain) return commands.restart ? SyncEnd::kRestart : SyncEnd::kDrained;
    context_.worker_status->ResyncDone();
    if (commands.seed_granted && !puller.fragments().front().version.has_value()) {
      ATOLL_RETURN_IF_ERROR(
          UseSeedGrant(*parts_.session, *parts_.replica, layout_, *parts_.retry_policy, context_));
    }
  }
}

void OverlappedSync::TakeOver(std::vector<FragmentBase> bases) {
  uint64_t largest = 0;
  for (FragmentBase& base : bases) {
    largest = std::max(largest, base.layout.elements);
    auto& fragment = *fragments_.emplace_back(std::make_unique<StreamedFragment>(std::move(base)));
    fragment.encoder = &encoders_[fragment.index()];
    fragment.exchange = std::make_unique<FragmentExchange>(FragmentExchange::Parts{
        .base = &fragment.base,
        .encoder = fragment.encoder,
        .push_journal = &push_journal_,
        .resume_state = &resume_state_,
        .worker_status = context_.worker_status,
        .runner = parts_.runner,
        .pull = PullEncoding::Of(run_),
    });
    fragment.finished = fragment.base.plan.committed_tokens >= fragment.base.plan.total_tokens;
    // Set between the description of the run and this pull.
    reconfigured_ |= fragment.base.plan.config_version > config_version_;
  }
  scratch_.resize(largest);
  for (const PushKey& key : parts_.session->info().accepted) {
    if (key.fragment.value() >= fragments_.size()) continue;
    StreamedFragment& fragment = *fragments_[key.fragment.value()];
    if (fragment.base.version == key.base) fragment.encoder->MarkDone(key.base);
  }
  schedule_ =
      std::make_unique<FragmentSchedule>(fragments_.front()->base.plan.inner_steps,
                                         static_cast<uint32_t>(fragments_.size()), run_.sync.delay_steps);
  pushed_position_ = parts_.replica->samples_consumed();
}

absl::StatusOr<OverlappedSync::MaybeEnd> OverlappedSync::Turn() {
  ATOLL_RETURN_IF_ERROR(UseAnswers());
  ATOLL_ASSIGN_OR_RETURN(const MaybeEnd end, EndOfTurn());
  if (end.has_value()) return end;
  if (to_evaluate_.has_value() && !evaluate_last_) {
    ATOLL_RETURN_IF_ERROR(EvaluateBases(*std::exchange(to_evaluate_, std::nullopt)));
  }
  ATOLL_RETURN_IF_ERROR(Step());
  // What came meanwhile need not be passed over.
  ATOLL_RETURN_IF_ERROR(UseAnswers());
  // A round of a newer configuration may refuse what is encoded by this one, and the fragment would never go
  // on: the configuration changes first, at the end of this turn.
  if (!reconfigured_) ATOLL_RETURN_IF_ERROR(PushDue());
  return MaybeEnd();
}

absl::Status OverlappedSync::Step() {
  const uint32_t active = std::max<uint32_t>(fragments_.front()->base.plan.active_workers, 1);
  const auto ahead = static_cast<uint32_t>(schedule_->now() - committed_at_);
  const double rate =
      LearningRateAt(run_, SchedulePosition(run_, TokensAtStep(run_, committed_tokens_, ahead, active)));
  InnerRound& first = fragments_.front()->window;
  const double loss_before = first.loss_sum;
  const Duration compute_before = first.compute;
  const auto step =
      TakeInnerStep(*parts_.replica, rate, *resume_state_.optimizer_warmup, first, context_, OverdueShare());
  if (!step.ok()) {
    const bool not_finite = absl::IsFailedPrecondition(step.status()) &&
                            RejectionReasonOf(step.status()) == RejectionReason::kNone;
    return not_finite ? DropWindows(step.status()) : step.status();
  }
  schedule_->StepTaken();
  computed_ += first.compute - compute_before;
  for (size_t i = 1; i < fragments_.size(); ++i) {
    InnerRound& window = fragments_[i]->window;
    window.steps += 1;
    window.tokens += step->tokens;
    window.loss_sum += first.loss_sum - loss_before;
  }
  return absl::OkStatus();
}

double OverlappedSync::OverdueShare() const {
  double held = 0;
  double all = 0;
  for (const auto& fragment : fragments_) {
    if (LeftBehind(*fragment)) continue;
    all += 1;
    if (fragment->window.steps >= schedule_->steps()) held += 1;
  }
  return all > 0 ? held / all : 0;
}

absl::Status OverlappedSync::PushDue() {
  // When channels are short, the one that has waited longest goes first.
  std::vector<StreamedFragment*> order;
  for (const auto& fragment : fragments_) {
    if (!LeftBehind(*fragment)) order.push_back(fragment.get());
  }
  std::ranges::stable_sort(order, {}, [this](const auto* one) { return schedule_->DueIn(one->index()); });
  for (StreamedFragment* const fragment : order) {
    const bool due = schedule_->Due(fragment->index());
    if (fragment->exchange->away()) {
      if (leaving_ ? due : schedule_->TooLate(fragment->index())) Skip(*fragment);
      continue;
    }
    // Pushed now, it could not be pushed again at the very end of the budget.
    const uint64_t left = fragment->StepsToBudget(run_.tokens_per_step());
    const bool waits_for_end = left > 0 && left <= run_.sync.delay_steps;
    if (left == 0 || (due && !waits_for_end)) ATOLL_RETURN_IF_ERROR(Push(*fragment).status());
  }
  return absl::OkStatus();
}

void OverlappedSync::Skip(StreamedFragment& fragment) {
  schedule_->Skipped(fragment.index());
  fragment.pushed_to_leave = leaving_;
  context_.observer->OnPushSkipped(fragment.base.layout.id);
  context_.log.Debug("a push is skipped: the last one of the fragment is unanswered",
                     {{"fragment", fragment.index()}, {"base", fragment.base.version->value()}});
}

absl::StatusOr<bool> OverlappedSync::Push(StreamedFragment& fragment) {
  FragmentExchange& exchange = *fragment.exchange;
  // Pushed on this base by an earlier life, and no channel was free until now: only its answer is missing.
  if (fragment.encoder->IsDone(*fragment.base.version)) {
    return AskForAnswer(fragment);
  }
  if (fragment.window.steps == 0 || !HasRoom()) return false;
  ATOLL_RETURN_IF_ERROR(Measure(fragment));
  const PushHeader claims{
      .key = {.fragment = fragment.base.layout.id, .base = *fragment.base.version, .sequence = 0},
      .tokens = fragment.window.tokens,
      .steps = fragment.window.steps,
      .partition = partition_,
      .samples_consumed = parts_.replica->samples_consumed(),
      .mean_loss = fragment.window.mean_loss()};
  const bool captured = fragment.index() == 0 &&
                        CaptureRound(resume_state_, parts_.session->member().epoch, *fragment.base.version,
                                     committed_tokens_, *parts_.replica, context_);
  if (!exchange.StartPush(claims, captured)) return false;
  schedule_->Pushed(fragment.index());
  fragment.generation = generation_;
  fragment.pushed_to_leave = leaving_;
  if (fragment.index() == 0) {
    first_pushed_at_ = schedule_->now();
    pushed_position_ = claims.samples_consumed;
    const MonoTime now = context_.clock->Now();
    context_.observer->OnRound(fragment.window.steps, fragment.window.tokens, fragment.window.mean_loss(),
                               now - std::exchange(round_began_, now));
  }
  fragment.window = InnerRound();
  return true;
}

bool OverlappedSync::HasRoom() const {
  // Those that only wait for the others do not count: two workers, each with all its pushes waiting for the
  // other's next one, would wait for ever.
  const auto sending = std::ranges::count_if(
      fragments_, [](const auto& fragment) { return fragment->exchange->unacknowledged(); });
  return std::cmp_less(sending, run_.sync.max_in_flight) && parts_.runner->HasFreeChannel();
}

bool OverlappedSync::AskForAnswer(StreamedFragment& fragment) {
  // All steps of this life are newer than that push, and began at the base.
  if (run_.sync.answer == AnswerUse::kRebase) fragment.local_at_push = fragment.base.values;
  return fragment.exchange->StartPull(fragment.base.version);
}

absl::Status OverlappedSync::Measure(StreamedFragment& fragment) {
  const Spending spending(context_.time, TimeUse::kEncode);
  std::vector<float>& delta = fragment.exchange->buffer();
  ATOLL_RETURN_IF_ERROR(parts_.replica->ReadFragment(fragment.base.layout, delta));
  if (run_.sync.answer == AnswerUse::kRebase) fragment.local_at_push = delta;
  for (size_t i = 0; i < delta.size(); ++i) delta[i] = fragment.base.values[i] - delta[i];
  return absl::OkStatus();
}

}  // namespace atl

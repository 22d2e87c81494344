#include "client/sync/answer_adopter.h"

#include <algorithm>
#include <utility>

#include "client/sync/published_values.h"
#include "common/status.h"

namespace atl {

absl::Status AnswerAdopter::UseAnswers() {
  for (const auto& fragment : state_.fragments) {
    FragmentExchange& exchange = *fragment->exchange;
    const ExchangeAnswer* const answer = exchange.away() ? exchange.Peek() : nullptr;
    if (answer == nullptr) continue;
    // What was refused is in the residual: the sooner the local parameters forget it the better.
    const bool counted = answer->report.has_value() && answer->report->verdict == Verdict::kCounted;
    if (answer->status.ok() && counted && !state_.schedule->Usable(fragment->index())) continue;
    ATOLL_RETURN_IF_ERROR(Use(*fragment, exchange.Take()));
  }
  return absl::OkStatus();
}

absl::Status AnswerAdopter::Use(StreamedFragment& fragment, const ExchangeAnswer& answer) {
  const Spending spending(context_.time, TimeUse::kApply);
  if (!answer.status.ok()) {
    const WorkerCommands commands = context_.worker_status->commands();
    if (!absl::IsCancelled(answer.status) || !(commands.stop || commands.drain || state_.flushing))
      return answer.status;
    fragment.pushed_to_leave = true;  // on this base nothing more can follow
    return absl::OkStatus();
  }
  if (answer.report.has_value() && HasOldCodec(*answer.report)) {
    LogOldCodec(fragment.encoder->header(), *answer.report, context_.log);
    state_.reconfigured = fragment.pushed_to_leave = true;
    return absl::OkStatus();
  }
  if (answer.report.has_value() && answer.report->verdict == Verdict::kNotFinite) {
    state_.schedule->Used(fragment.index(), 0);
    // Its window may have been dropped since it was pushed.
    return fragment.generation == state_.generation ? DropWindows(answer.report->rejection)
                                                    : absl::OkStatus();
  }
  context_.worker_status->NoteRunState(answer.pulled->state);
  if (answer.pulled->outcome == PullOutcome::kParameters) return Adopt(fragment, answer);
  fragment.finished = true;
  return absl::OkStatus();
}

absl::Status AnswerAdopter::Adopt(StreamedFragment& fragment, const ExchangeAnswer& answer) {
  const PulledVersion& pulled = *answer.pulled;
  const Version held = *fragment.base.version;
  ATOLL_RETURN_IF_ERROR(CheckNotBack(pulled, fragment.base.layout.id, held, context_.log));
  const bool pushed = answer.report.has_value();
  const bool lost = pushed && answer.report->verdict == Verdict::kLost;
  const bool late = pushed && (lost || answer.report->head > held);
  const bool as_published = lost || std::exchange(fragment.take_as_published, false);
  const uint64_t counted_to = pushed ? state_.first_pushed_at : state_.schedule->now();
  const uint64_t age = state_.schedule->Used(fragment.index(), StepsIn(answer.waited));
  ATOLL_RETURN_IF_ERROR(WriteAnswer(fragment, as_published));
  // The steps since the push are gone with the local parameters: the next push must not claim them.
  if (as_published) fragment.window = InnerRound();
  TakeBase(fragment, pulled);
  if (pushed && !lost && fragment.generation == state_.generation) state_.guard.RoundCounted();
  if (lost) LogLost(fragment.encoder->header(), *answer.report, context_.log);
  const RoundPlan& plan = fragment.base.plan;
  if (late && plan.deadline > Duration(0)) {
    // The deadline counts from the publication, which those who were in time used at once.
    state_.schedule->CameLate(fragment.index(),
                              StepsIn(std::max(state_.run.round.deadline - plan.deadline, Duration(0))));
  }
  if (pushed) context_.observer->OnUsed(fragment.base.layout.id, pulled.version, age);
  context_.log.Debug(
      "uses a published version",
      {{"fragment", fragment.index()}, {"version", pulled.version.value()}, {"steps_since_push", age}});
  return fragment.index() == 0 ? NoteFirst(counted_to) : absl::OkStatus();
}

void AnswerAdopter::TakeBase(StreamedFragment& fragment, const PulledVersion& pulled) {
  FragmentBase& base = fragment.base;
  base.values.swap(fragment.exchange->buffer());
  base.version = pulled.version;
  base.served = pulled.published;
  base.plan = pulled.plan;
  fragment.finished = base.plan.committed_tokens >= base.plan.total_tokens;
  state_.reconfigured |= base.plan.config_version > state_.config_version;
}

absl::Status AnswerAdopter::WriteAnswer(StreamedFragment& fragment, bool as_published) {
  const std::vector<float>& published = fragment.exchange->buffer();
  const SyncOptions& sync = state_.run.sync;
  const bool rebase = sync.answer == AnswerUse::kRebase;
  if (as_published || (!rebase && sync.alpha == 0)) {
    return replica_->WriteFragment(fragment.base.layout, published);
  }
  if (local_.size() < published.size()) local_.resize(published.size());
  const std::span<float> local = std::span(local_).first(published.size());
  ATOLL_RETURN_IF_ERROR(replica_->ReadFragment(fragment.base.layout, local));
  if (rebase) {
    for (size_t i = 0; i < local.size(); ++i)
      local[i] = published[i] + (local[i] - fragment.local_at_push[i]);
  } else {
    const auto kept = static_cast<float>(sync.alpha);
    const auto taken = static_cast<float>(1 - sync.alpha);
    for (size_t i = 0; i < local.size(); ++i) local[i] = kept * local[i] + taken * published[i];
  }
  return replica_->WriteFragment(fragment.base.layout, local);
}

absl::Status AnswerAdopter::NoteFirst(uint64_t counted_to) {
  const StreamedFragment& fragment = state_.first();
  const RoundPlan& plan = fragment.base.plan;
  state_.committed_tokens = plan.committed_tokens;
  state_.committed_at = counted_to;
  state_.schedule->SetSteps(plan.inner_steps);
  if (plan.evaluate) {
    state_.to_evaluate = EvaluationOrder{.version = *fragment.base.version, .tasks = plan.run_tasks};
    state_.evaluate_last = fragment.finished;
  }
  context_.worker_status->Update([&](ProgressReport& progress) {
    progress.base = *fragment.base.version;
    progress.steps = state_.schedule->steps();
  });
  // Where fragment 0 was pushed is what the coordinator knows of.
  ATOLL_ASSIGN_OR_RETURN(const bool moved, state_.data.Follow(plan, state_.pushed_position));
  if (moved) state_.pushed_position = plan.data->samples_consumed;
  return absl::OkStatus();
}

uint64_t AnswerAdopter::StepsIn(Duration time) const {
  if (state_.computed <= Duration(0) || time <= Duration(0)) return 0;
  return static_cast<uint64_t>(ToSeconds(time) / ToSeconds(state_.computed) *
                               static_cast<double>(state_.schedule->now()));
}

absl::Status AnswerAdopter::DropWindows(const absl::Status& why) {
  ++state_.generation;
  state_.guard.RoundDropped(*state_.first().base.version, why);
  if (state_.guard.hopeless()) return absl::OkStatus();
  for (const auto& fragment : state_.fragments) {
    ATOLL_RETURN_IF_ERROR(replica_->WriteFragment(fragment->base.layout, fragment->base.values));
    fragment->window = InnerRound();
    fragment->take_as_published = fragment->exchange->away();
  }
  return absl::OkStatus();
}

}  // namespace atl

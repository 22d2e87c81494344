#include <algorithm>
#include <utility>

#include "common/status.h"
#include "worker/sync/evaluation.h"
#include "worker/sync/overlapped_sync.h"
#include "worker/sync/rejection.h"

// What comes back from exchanges.

namespace atl {

absl::Status OverlappedSync::UseAnswers() {
  for (const auto& fragment : fragments_) {
    FragmentExchange& exchange = *fragment->exchange;
    const ExchangeAnswer* const answer = exchange.away() ? exchange.Peek() : nullptr;
    if (answer == nullptr) continue;
    // What was refused is in the residual: the sooner the local parameters forget it the better.
    const bool counted = answer->report.has_value() && answer->report->verdict == Verdict::kCounted;
    if (answer->status.ok() && counted && !schedule_->Usable(fragment->index())) continue;
    ATOLL_RETURN_IF_ERROR(Use(*fragment, exchange.Take()));
  }
  return absl::OkStatus();
}

absl::Status OverlappedSync::Use(StreamedFragment& fragment, const ExchangeAnswer& answer) {
  const Spending spending(context_.time, TimeUse::kApply);
  if (!answer.status.ok()) {
    const WorkerCommands commands = context_.worker_status->commands();
    if (!absl::IsCancelled(answer.status) || !(commands.stop || commands.drain || flushing_))
      return answer.status;
    fragment.pushed_to_leave = true;  // on this base nothing more can follow
    return absl::OkStatus();
  }
  if (answer.report.has_value() && HasOldCodec(*answer.report)) {
    LogOldCodec(fragment.encoder->header(), *answer.report, context_.log);
    reconfigured_ = fragment.pushed_to_leave = true;
    return absl::OkStatus();
  }
  if (answer.report.has_value() && answer.report->verdict == Verdict::kNotFinite) {
    schedule_->Used(fragment.index(), 0);
    // Its window may have been dropped since it was pushed.
    return fragment.generation == generation_ ? DropWindows(answer.report->rejection) : absl::OkStatus();
  }
  context_.worker_status->NoteRunState(answer.pulled->state);
  if (answer.pulled->kind == PullKind::kParameters) return Adopt(fragment, answer);
  fragment.finished = true;
  return absl::OkStatus();
}

absl::Status OverlappedSync::Adopt(StreamedFragment& fragment, const ExchangeAnswer& answer) {
  const PulledVersion& pulled = *answer.pulled;
  FragmentBase& base = fragment.base;
  if (pulled.version < *base.version) {
    const absl::Status back = WentBack(base.layout.id, *base.version, pulled.version);
    context_.log.Error("versions are lost; this worker goes on from an older one", {{"why", Explain(back)}});
    return back;
  }
  const bool pushed = answer.report.has_value();
  const bool lost = pushed && answer.report->verdict == Verdict::kLost;
  const bool late = pushed && (lost || answer.report->head > *base.version);
  const bool as_published = lost || std::exchange(fragment.take_as_published, false);
  const uint64_t counted_to = pushed ? first_pushed_at_ : schedule_->now();
  const uint64_t age = schedule_->Used(fragment.index(), StepsIn(answer.waited));
  ATOLL_RETURN_IF_ERROR(TakeAnswer(fragment, as_published));
  // The steps since the push are gone with the local parameters: the next push must not claim them.
  if (as_published) fragment.window = InnerRound();
  base.values.swap(fragment.exchange->buffer());
  base.version = pulled.version;
  base.served = pulled.published;
  base.plan = pulled.plan;
  fragment.finished = base.plan.committed_tokens >= base.plan.total_tokens;
  reconfigured_ |= base.plan.config_version > config_version_;
  if (pushed && !lost && fragment.generation == generation_) not_finite_ = 0;
  if (lost) LogRejection(fragment, *answer.report);
  if (late && base.plan.deadline > Duration(0)) {
    // The deadline counts from the publication, which those who were in time used at once.
    schedule_->CameLate(fragment.index(),
                        StepsIn(std::max(run_.round.deadline - base.plan.deadline, Duration(0))));
  }
  if (pushed) context_.observer->OnUsed(base.layout.id, pulled.version, age);
  context_.log.Debug(
      "uses a published version",
      {{"fragment", fragment.index()}, {"version", pulled.version.value()}, {"steps_since_push", age}});
  return fragment.index() == 0 ? NoteFirst(fragment, counted_to) : absl::OkStatus();
}

void OverlappedSync::LogRejection(const StreamedFragment& fragment, const DeliveryReport& report) {
  context_.log.Warning("a contribution was refused; its content goes into the next one",
                       {{"fragment", fragment.index()},
                        {"head", fragment.base.version->value()},
                        {"error", Explain(report.rejection)}});
}

absl::Status OverlappedSync::TakeAnswer(StreamedFragment& fragment, bool as_published) {
  const std::vector<float>& published = fragment.exchange->buffer();
  const bool rebase = run_.sync.answer == AnswerUse::kRebase;
  if (as_published || (!rebase && run_.sync.alpha == 0)) {
    return parts_.replica->WriteFragment(fragment.base.layout, published);
  }
  const std::span<float> local = std::span(scratch_).first(published.size());
  ATOLL_RETURN_IF_ERROR(parts_.replica->ReadFragment(fragment.base.layout, local));
  if (rebase) {
    for (size_t i = 0; i < local.size(); ++i)
      local[i] = published[i] + (local[i] - fragment.local_at_push[i]);
  } else {
    const auto kept = static_cast<float>(run_.sync.alpha);
    const auto taken = static_cast<float>(1 - run_.sync.alpha);
    for (size_t i = 0; i < local.size(); ++i) local[i] = kept * local[i] + taken * published[i];
  }
  return parts_.replica->WriteFragment(fragment.base.layout, local);
}

absl::Status OverlappedSync::NoteFirst(const StreamedFragment& fragment, uint64_t counted_to) {
  const PlannedRound& plan = fragment.base.plan;
  committed_tokens_ = plan.committed_tokens;
  committed_at_ = counted_to;
  schedule_->SetSteps(plan.inner_steps);
  if (plan.evaluate) {
    to_evaluate_ = fragment.base.version;
    evaluate_last_ = fragment.finished;
  }
  context_.worker_status->Update([&](ProgressReport& progress) {
    progress.base = *fragment.base.version;
    progress.steps = schedule_->steps();
  });
  return GoToData(plan);
}

absl::Status OverlappedSync::GoToData(const PlannedRound& plan) {
  if (!plan.data.has_value()) return absl::OkStatus();
  // Compared with where fragment 0 was pushed, which is what the coordinator knows of.
  if (partition_ == plan.data->partition && pushed_position_ == plan.data->samples_consumed) {
    return absl::OkStatus();
  }
  const Spending spending(context_.time, TimeUse::kData);
  context_.log.Debug("goes to another part of the data", {{"partition", plan.data->partition},
                                                          {"samples_consumed", plan.data->samples_consumed}});
  ATOLL_RETURN_IF_ERROR(parts_.replica->SetPartition(plan.data->partition, plan.data->partitions));
  partition_ = plan.data->partition;
  pushed_position_ = plan.data->samples_consumed;
  parts_.session->MoveTo(*plan.data);
  return parts_.replica->Seek(plan.data->samples_consumed);
}

uint64_t OverlappedSync::StepsIn(Duration time) const {
  if (computed_ <= Duration(0) || time <= Duration(0)) return 0;
  return static_cast<uint64_t>(ToSeconds(time) / ToSeconds(computed_) *
                               static_cast<double>(schedule_->now()));
}

absl::Status OverlappedSync::DropWindows(const absl::Status& why) {
  ++generation_;
  ++not_finite_;
  context_.observer->OnRoundNotFinite();
  hopeless_ = not_finite_ >= options_.max_rounds_not_finite;
  const LogFields fields = {{"in_a_row", not_finite_}, {"error", Explain(why)}};
  if (hopeless_) {
    context_.log.Error("time after time it is not finite; giving up: lower the learning rate", fields);
    return absl::OkStatus();
  }
  context_.log.Warning("not finite; going on from the published parameters", fields);
  for (const auto& fragment : fragments_) {
    ATOLL_RETURN_IF_ERROR(parts_.replica->WriteFragment(fragment->base.layout, fragment->base.values));
    fragment->window = InnerRound();
    fragment->take_as_published = fragment->exchange->away();
  }
  return absl::OkStatus();
}

absl::Status OverlappedSync::EvaluateBases(Version version) {
  const Spending spending(context_.time, TimeUse::kEvaluate);
  aside_.resize(fragments_.size());
  for (size_t i = 0; i < fragments_.size(); ++i) {
    const FragmentBase& base = fragments_[i]->base;
    aside_[i].resize(base.layout.elements);
    ATOLL_RETURN_IF_ERROR(parts_.replica->ReadFragment(base.layout, aside_[i]));
    ATOLL_RETURN_IF_ERROR(parts_.replica->WriteFragment(base.layout, base.values));
  }
  ATOLL_RETURN_IF_ERROR(
      EvaluateVersion(*parts_.replica, version, run_.evaluation_batches, *parts_.heartbeater, context_));
  for (size_t i = 0; i < fragments_.size(); ++i) {
    ATOLL_RETURN_IF_ERROR(parts_.replica->WriteFragment(fragments_[i]->base.layout, aside_[i]));
  }
  aside_ = {};
  EnterPhase(context_, WorkerPhase::kTraining);
  return absl::OkStatus();
}

}  // namespace atl

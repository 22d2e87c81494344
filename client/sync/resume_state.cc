#include "client/sync/resume_state.h"

#include "absl/strings/str_format.h"
#include "client/sync/parameter_puller.h"
#include "client/sync/peer_audit.h"
#include "client/sync/rejection.h"
#include "common/status.h"
#include "core/confirmation.h"

namespace atl {
namespace {

PushOutcome OutcomeOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kCounted:
      return PushOutcome::kCounted;
    case Verdict::kLost:
      return PushOutcome::kCarried;
    case Verdict::kNotFinite:
      break;
  }
  return PushOutcome::kDropped;
}

/// FailedPrecondition: of another epoch. DataLoss: its base is above the head.
absl::Status CheckNotLost(const PushRecord& kept, const JoinedRun& run) {
  if (kept.epoch != run.member.epoch) {
    return absl::FailedPreconditionError("it is of an epoch before the run was restored");
  }
  const PushKey& key = kept.header.key;
  for (const FragmentHead& head : run.fragments) {
    if (head.id != key.fragment || key.base <= head.version) continue;
    return absl::DataLossError(absl::StrFormat("its base, version %d, is lost: the head is %d",
                                               key.base.value(), head.version.value()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PushJournal::TakeUp(const std::vector<FragmentLayout>& layout,
                                 std::vector<PseudoGradientEncoder>& encoders, const JoinedRun& run,
                                 std::optional<uint32_t> partition, Delivery& delivery, Replica& replica) {
  if (checkpoint_ == nullptr) return absl::OkStatus();
  for (size_t i = 0; i < encoders.size(); ++i) {
    auto kept = checkpoint_->LoadPush(layout[i].id);
    if (absl::IsNotFound(kept.status())) continue;
    if (kept.ok()) {
      const absl::Status usable = CheckNotLost(*kept, run);
      // Another version will have the number of its base: a later life must not push it there.
      if (absl::IsDataLoss(usable)) checkpoint_->DropPush(layout[i].id);
      if (!usable.ok()) kept = usable;
    }
    if (!kept.ok()) {
      GiveUp(layout[i].id, kept.status());
      continue;
    }
    ATOLL_RETURN_IF_ERROR(TakeUp(encoders[i], *kept, partition, delivery, replica));
  }
  return absl::OkStatus();
}

absl::Status PushJournal::TakeUp(PseudoGradientEncoder& encoder, PushRecord& kept,
                                 std::optional<uint32_t> partition, Delivery& delivery, Replica& replica) {
  const bool asks = !kept.verdict.has_value();
  const bool was_rejected = kept.verdict == Verdict::kLost;
  const bool sends = encoder.Sends(kept.header.codec);
  if (asks) {
    context_.log.Info(
        "an earlier life of this worker ended before the coordinator answered its push; asking for the "
        "answer",
        {{"fragment", kept.header.key.fragment.value()}, {"base", kept.header.key.base.value()}});
  }
  std::optional<DeliveryReport> report;
  if (asks && !sends) {
    // The verdict decides what is restored: content that counts must not be carried as well.
    ATOLL_ASSIGN_OR_RETURN(report, delivery.Conclude(kept.header));
    kept.verdict = report->verdict;
  }
  if (const absl::Status usable = encoder.Restore(kept); !usable.ok()) {
    GiveUp(kept.header.key.fragment, usable);
    return absl::OkStatus();
  }
  if (asks && sends) {
    ATOLL_ASSIGN_OR_RETURN(report, delivery.Resume(encoder.header(), encoder.payload()));
  }
  if (report.has_value()) {
    if (report->forgotten) {
      Forget(encoder, *report);
      return absl::OkStatus();
    }
    Conclude(encoder, kept, *report);
  } else {
    encoder.Settle(*kept.verdict);
  }
  if (was_rejected) encoder.MayFollow();
  // Its samples are in a contribution or in the residual: they are not due again.
  const PushHeader& header = kept.header;
  if (header.partition != partition || header.samples_consumed <= replica.samples_consumed()) {
    return absl::OkStatus();
  }
  return replica.Seek(header.samples_consumed);
}

void PushJournal::Conclude(PseudoGradientEncoder& encoder, const PushRecord& kept,
                           const DeliveryReport& report) {
  const Spending spending(context_.time, TimeUse::kSave);
  const PushKey& key = kept.header.key;
  context_.worker_status->push_outcomes().Note(key, OutcomeOf(report.verdict));
  if (!report.open) {
    // After Restore only the file's verdict is left for the encoder.
    encoder.Settle(kept.verdict.value_or(report.verdict));
    WriteDown(kept.header, report.verdict);
  }
  // An open one has no verdict on disk: the next life must not take its base for done either.
  context_.log.Info(
      report.verdict == Verdict::kCounted ? "it counts" : "it does not count; its content goes into the next",
      {{"base", key.base.value()}, {"head", report.head.value()}});
}

void PushJournal::GiveUp(FragmentId fragment, const absl::Status& why) {
  context_.log.Warning("a kept contribution cannot be used; what its encoding lost is gone",
                       {{"fragment", fragment.value()}, {"error", Explain(why)}});
}

void PushJournal::Record(Epoch epoch, const PseudoGradientEncoder& encoder, TimeAccount* time) {
  PushOutcomes& outcomes = context_.worker_status->push_outcomes();
  const PushKey& key = encoder.header().key;
  outcomes.Note(key, PushOutcome::kUnkept);
  if (checkpoint_ == nullptr) return;
  const Spending spending(time, TimeUse::kSave);
  const absl::Status kept =
      checkpoint_->WritePush(epoch, encoder.header(), encoder.payload(), encoder.residual());
  if (kept.ok()) {
    outcomes.Note(key, PushOutcome::kKept);
    return;
  }
  // Not a reason to make everybody wait for this disk: the coordinator counts it once in any case.
  context_.log.Warning(
      "a contribution is sent without having been kept; killed now, what its encoding lost "
      "would be gone",
      {{"fragment", key.fragment.value()}, {"error", Explain(kept)}});
}

void PushJournal::Forget(PseudoGradientEncoder& encoder, const DeliveryReport& report) {
  const PushKey& key = encoder.header().key;
  context_.log.Warning(
      "the coordinator no longer knows whether it counted; its content is not sent again",
      {{"fragment", key.fragment.value()}, {"base", key.base.value()}, {"head", report.head.value()}});
  encoder.Forget();
  context_.worker_status->push_outcomes().Note(key, PushOutcome::kForgotten);
}

void PushJournal::Settle(PseudoGradientEncoder& encoder, const DeliveryReport& report, TimeAccount* time) {
  if (report.forgotten) return Forget(encoder, report);
  Settle(encoder, report.verdict, time);
}

void PushJournal::Settle(PseudoGradientEncoder& encoder, Verdict verdict, TimeAccount* time) {
  const Spending spending(time, TimeUse::kSave);
  encoder.Settle(verdict);
  context_.worker_status->push_outcomes().Note(encoder.header().key, OutcomeOf(verdict));
  WriteDown(encoder.header(), verdict);
}

void PushJournal::WriteDown(const PushHeader& header, Verdict verdict) {
  if (checkpoint_ == nullptr) return;
  // Without it the next life asks the coordinator, so that a failure only costs a question.
  const absl::Status settled = checkpoint_->SettlePush(header.key, header.payload_crc32c, verdict);
  if (!settled.ok() && !absl::IsNotFound(settled)) {
    context_.log.Debug("a verdict could not be written down", {{"error", Explain(settled)}});
  }
}

bool CaptureRound(const ResumeState& resume_state, Epoch epoch, Version base, uint64_t committed_tokens,
                  Replica& replica, const WorkerContext& context) {
  if (resume_state.checkpoint == nullptr) return false;
  const Spending spending(context.time, TimeUse::kSave);
  // Who leaves comes back with this state: it is worth waiting for the last one to be written.
  if (context.worker_status->commands().drain) resume_state.checkpoint->Flush();
  RoundCheckpoint* const round = resume_state.checkpoint->BeginRound();
  if (round == nullptr) {
    context.log.Debug("the state of the last round is still being written; that of this one is not kept");
    return false;
  }
  round->epoch = epoch;
  round->base = base;
  round->committed_tokens = committed_tokens;
  round->optimizer_warmup_steps = resume_state.optimizer_warmup->steps();
  round->optimizer_warmup_left = resume_state.optimizer_warmup->left();
  const absl::Status saved = replica.SaveState(round->replica);
  if (!saved.ok()) {
    context.log.Warning("the inner optimizer's state cannot be saved", {{"error", Explain(saved)}});
  }
  return saved.ok();
}

void CheckpointRound(const ResumeState& resume_state, Epoch epoch, Version base, uint64_t committed_tokens,
                     Replica& replica, const WorkerContext& context) {
  if (CaptureRound(resume_state, epoch, base, committed_tokens, replica, context))
    resume_state.checkpoint->SaveRound();
}

void BeginOptimizerWarmup(const ResumeState& resume_state, const RunOptions& run, const RoundPlan& plan,
                          const WorkerContext& context) {
  OptimizerWarmup& optimizer_warmup = *resume_state.optimizer_warmup;
  if (!optimizer_warmup.cold()) return;
  const bool midway = plan.committed_tokens > 0;
  optimizer_warmup.Begin(midway ? OptimizerWarmupSteps(run.inner) : 0);
  if (optimizer_warmup.left() == 0) return;
  context.log.Info("the inner optimizer is new while the run is not: warming up its learning rate",
                   {{"steps", optimizer_warmup.steps()}});
}

void Confirm(const ResumeState& resume_state, const MemberRef& member, const FragmentBase& base,
             const ContentHash& published, WorkerStatus& worker_status) {
  if (resume_state.key == nullptr) return;
  Confirmation confirmation{.fragment = base.layout.id, .version = *base.version, .published = published};
  confirmation.signature = resume_state.key->Sign(ConfirmationText(
      {.run_id = member.run_id, .epoch = member.epoch, .worker = member.worker}, confirmation));
  worker_status.AddConfirmation(confirmation);
  if (resume_state.audit != nullptr && published == base.served)
    resume_state.audit->Signed(member, confirmation);
}

}  // namespace atl

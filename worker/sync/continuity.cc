#include "worker/sync/continuity.h"

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/confirmation.h"
#include "worker/sync/parameter_follower.h"
#include "worker/sync/peer_audit.h"
#include "worker/sync/rejection.h"

namespace atoll {
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
absl::Status CheckNotLost(const KeptPush& kept, const JoinInfo& run) {
  if (kept.epoch != run.member.epoch) {
    return absl::FailedPreconditionError("it is of an epoch before the run was restored");
  }
  const PushKey& key = kept.offer.key;
  for (const FragmentHead& head : run.fragments) {
    if (head.id != key.fragment || key.base <= head.version) continue;
    return absl::DataLossError(absl::StrFormat("its base, version %d, is lost: the head is %d",
                                               key.base.value(), head.version.value()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PushKeeper::TakeUp(const std::vector<FragmentLayout>& layout,
                                std::vector<ContributionPacker>& packers, const JoinInfo& run,
                                std::optional<uint32_t> partition, Delivery& delivery, Replica& replica) {
  if (disk_ == nullptr) return absl::OkStatus();
  for (size_t i = 0; i < packers.size(); ++i) {
    auto kept = disk_->LoadPush(layout[i].id);
    if (absl::IsNotFound(kept.status())) continue;
    if (kept.ok()) {
      const absl::Status usable = CheckNotLost(*kept, run);
      // Another version will have the number of its base: a later life must not push it there.
      if (absl::IsDataLoss(usable)) disk_->DropPush(layout[i].id);
      if (!usable.ok()) kept = usable;
    }
    if (!kept.ok()) {
      GiveUp(layout[i].id, kept.status());
      continue;
    }
    ATOLL_RETURN_IF_ERROR(TakeUp(packers[i], *kept, partition, delivery, replica));
  }
  return absl::OkStatus();
}

absl::Status PushKeeper::TakeUp(ContributionPacker& packer, KeptPush& kept, std::optional<uint32_t> partition,
                                Delivery& delivery, Replica& replica) {
  const bool asks = !kept.verdict.has_value();
  const bool was_refused = kept.verdict == Verdict::kLost;
  const bool sends = packer.Sends(kept.offer.codec);
  if (asks) {
    context_.log.Info(
        "an earlier life of this worker ended before the coordinator answered its push; asking for the "
        "answer",
        {{"fragment", kept.offer.key.fragment.value()}, {"base", kept.offer.key.base.value()}});
  }
  std::optional<DeliveryReport> report;
  if (asks && !sends) {
    // The verdict decides what is restored: content that counts must not be carried as well.
    ATOLL_ASSIGN_OR_RETURN(report, delivery.Conclude(kept.offer));
    kept.verdict = report->verdict;
  }
  if (const absl::Status usable = packer.Restore(kept); !usable.ok()) {
    GiveUp(kept.offer.key.fragment, usable);
    return absl::OkStatus();
  }
  if (asks && sends) {
    ATOLL_ASSIGN_OR_RETURN(report, delivery.Resume(packer.offer(), packer.payload()));
  }
  if (report.has_value()) {
    if (report->forgotten) {
      Forget(packer, *report);
      return absl::OkStatus();
    }
    Conclude(packer, kept, *report);
  } else {
    packer.Settle(*kept.verdict);
  }
  if (was_refused) packer.MayFollow();
  // Its samples are in a contribution or in the residual: they are not due again.
  const PushOffer& offer = kept.offer;
  if (offer.partition != partition || offer.samples_consumed <= replica.samples_consumed()) {
    return absl::OkStatus();
  }
  return replica.Seek(offer.samples_consumed);
}

void PushKeeper::Conclude(ContributionPacker& packer, const KeptPush& kept, const DeliveryReport& report) {
  const Spending spending(context_.time, TimeUse::kSave);
  const PushKey& key = kept.offer.key;
  context_.board->NotePush(key, OutcomeOf(report.verdict));
  if (!report.open) {
    // After Restore the file's verdict is the one that is left for the packer.
    packer.Settle(kept.verdict.value_or(report.verdict));
    WriteDown(kept.offer, report.verdict);
  }
  // An open one has no verdict on disk: the next life must not take its base for done either.
  context_.log.Info(
      report.verdict == Verdict::kCounted ? "it counts" : "it does not count; its content goes into the next",
      {{"base", key.base.value()}, {"head", report.head.value()}});
}

void PushKeeper::GiveUp(FragmentId fragment, const absl::Status& why) {
  context_.log.Warning("a kept contribution cannot be used; what its encoding lost is gone",
                       {{"fragment", fragment.value()}, {"error", Explain(why)}});
}

void PushKeeper::Keep(Epoch epoch, const ContributionPacker& packer, TimeAccount* time) {
  if (disk_ == nullptr) return;
  const Spending spending(time, TimeUse::kSave);
  const absl::Status kept = disk_->WritePush(epoch, packer.offer(), packer.payload(), packer.residual());
  if (kept.ok()) return;
  // Not a reason to make everybody wait for this disk: the coordinator counts it once in any case.
  context_.log.Warning(
      "a contribution is sent without having been kept; killed now, what its encoding lost "
      "would be gone",
      {{"fragment", packer.offer().key.fragment.value()}, {"error", Explain(kept)}});
}

void PushKeeper::Forget(ContributionPacker& packer, const DeliveryReport& report) {
  const PushKey& key = packer.offer().key;
  context_.log.Warning(
      "the coordinator no longer knows whether it counted; its content is not sent again",
      {{"fragment", key.fragment.value()}, {"base", key.base.value()}, {"head", report.head.value()}});
  packer.Forget();
  context_.board->NotePush(key, PushOutcome::kForgotten);
}

void PushKeeper::Settle(ContributionPacker& packer, const DeliveryReport& report, TimeAccount* time) {
  if (report.forgotten) return Forget(packer, report);
  Settle(packer, report.verdict, time);
}

void PushKeeper::Settle(ContributionPacker& packer, Verdict verdict, TimeAccount* time) {
  const Spending spending(time, TimeUse::kSave);
  packer.Settle(verdict);
  context_.board->NotePush(packer.offer().key, OutcomeOf(verdict));
  WriteDown(packer.offer(), verdict);
}

void PushKeeper::WriteDown(const PushOffer& offer, Verdict verdict) {
  if (disk_ == nullptr) return;
  // Without it the next life asks the coordinator, so that a failure only costs a question.
  const absl::Status settled = disk_->SettlePush(offer.key, offer.payload_crc32c, verdict);
  if (!settled.ok() && !absl::IsNotFound(settled)) {
    context_.log.Debug("a verdict could not be written down", {{"error", Explain(settled)}});
  }
}

bool CaptureRound(const Continuity& continuity, Epoch epoch, Version base, uint64_t committed_tokens,
                  Replica& replica, const WorkerContext& context) {
  if (continuity.disk == nullptr) return false;
  const Spending spending(context.time, TimeUse::kSave);
  // Who leaves comes back with this state: it is worth waiting for the last one to be written.
  if (context.board->orders().drain) continuity.disk->Flush();
  KeptRound* const round = continuity.disk->BeginRound();
  if (round == nullptr) {
    context.log.Debug("the state of the last round is still being written; that of this one is not kept");
    return false;
  }
  round->epoch = epoch;
  round->base = base;
  round->committed_tokens = committed_tokens;
  round->rewarm_steps = continuity.rewarm->steps();
  round->rewarm_left = continuity.rewarm->left();
  const absl::Status saved = replica.SaveState(round->replica);
  if (!saved.ok()) {
    context.log.Warning("the inner optimizer's state cannot be saved", {{"error", Explain(saved)}});
  }
  return saved.ok();
}

void KeepRound(const Continuity& continuity, Epoch epoch, Version base, uint64_t committed_tokens,
               Replica& replica, const WorkerContext& context) {
  if (CaptureRound(continuity, epoch, base, committed_tokens, replica, context)) continuity.disk->SaveRound();
}

void BeginRewarm(const Continuity& continuity, const RunOptions& run, const PlannedRound& plan,
                 const WorkerContext& context) {
  Rewarm& rewarm = *continuity.rewarm;
  if (!rewarm.cold()) return;
  const bool midway = plan.committed_tokens > 0;
  rewarm.Begin(midway ? RewarmSteps(run.inner) : 0);
  if (rewarm.left() == 0) return;
  context.log.Info("the inner optimizer is new while the run is not: warming up its learning rate",
                   {{"steps", rewarm.steps()}});
}

void Confirm(const Continuity& continuity, const MemberRef& member, const FragmentBase& base,
             const ContentHash& published, Board& board) {
  if (continuity.key == nullptr) return;
  Confirmation confirmation{.fragment = base.layout.id, .version = *base.version, .published = published};
  confirmation.signature = continuity.key->Sign(ConfirmationText(
      {.run_id = member.run_id, .epoch = member.epoch, .worker = member.worker}, confirmation));
  board.AddConfirmation(confirmation);
  if (continuity.audit != nullptr && published == base.served) continuity.audit->Signed(member, confirmation);
}

}  // namespace atoll

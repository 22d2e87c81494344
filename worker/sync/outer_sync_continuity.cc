#include <utility>

#include "common/status.h"
#include "core/confirmation.h"
#include "worker/sync/outer_sync.h"
#include "worker/sync/rejection.h"

// What of the loop outlives the process: kept contributions, kept state, signed confirmations.

namespace atoll {
namespace {

/// The coordinator remembers the contributions of at least so many rounds. Asked about an older one it can
/// only say that it does not know it, though it may have counted.
constexpr uint64_t kRoundsRemembered = 32;

}  // namespace

absl::Status OuterSync::TakeUp() {
  if (continuity_.disk == nullptr) return absl::OkStatus();
  for (size_t i = 0; i < packers_.size(); ++i) {
    auto kept = continuity_.disk->LoadPush(layout_[i].id);
    if (absl::IsNotFound(kept.status())) continue;
    if (kept.ok() && kept->epoch != session_->info().member.epoch) {
      kept = absl::FailedPreconditionError("it is of an epoch before the run was restored");
    }
    const absl::Status usable = kept.ok() ? packers_[i].Restore(*kept) : kept.status();
    if (!usable.ok()) {
      context_.log.Warning("a kept contribution cannot be used; what its encoding lost is gone",
                           {{"fragment", layout_[i].id.value()}, {"error", Explain(usable)}});
      continue;
    }
    ATOLL_RETURN_IF_ERROR(TakeUp(packers_[i], *std::move(kept)));
  }
  return absl::OkStatus();
}

absl::Status OuterSync::TakeUp(ContributionPacker& packer, KeptPush kept) {
  if (kept.verdict.has_value()) {
    packer.Settle(*kept.verdict);
  } else {
    context_.log.Info("killed while it pushed; asking what became of the contribution",
                      {{"fragment", kept.offer.key.fragment.value()}, {"base", kept.offer.key.base.value()}});
    ATOLL_ASSIGN_OR_RETURN(const DeliveryReport report, delivery_.Resume(packer.offer(), packer.payload()));
    const uint64_t base = kept.offer.key.base.value();
    if (report.verdict == Verdict::kLost && report.head.value() > base + kRoundsRemembered) {
      context_.log.Warning(
          "the coordinator no longer knows whether it counted; its content is not sent again",
          {{"base", base}, {"head", report.head.value()}});
      packer.Forget();
      return absl::OkStatus();
    }
    Settle(packer, report.verdict);
    context_.log.Info(report.verdict == Verdict::kCounted
                          ? "it counts"
                          : "it does not count; its content goes into the next",
                      {{"base", base}, {"head", report.head.value()}});
  }
  // Its samples are in a contribution or in the residual: they are not due again.
  const PushOffer& offer = kept.offer;
  if (offer.partition != partition_ || offer.samples_consumed <= replica_->samples_consumed()) {
    return absl::OkStatus();
  }
  return replica_->Seek(offer.samples_consumed);
}

void OuterSync::KeepPushes() {
  if (continuity_.disk == nullptr) return;
  for (size_t i = 0; i < packers_.size(); ++i) {
    if (packers_[i].IsDone(*follower_.fragments()[i].version)) continue;
    const absl::Status kept = continuity_.disk->WritePush(session_->info().member.epoch, packers_[i].offer(),
                                                          packers_[i].payload(), packers_[i].residual());
    if (kept.ok()) continue;
    // Not a reason to make everybody wait for this disk: the coordinator counts it once in any case.
    context_.log.Warning(
        "a contribution is sent without having been kept; killed now, what its encoding lost "
        "would be gone",
        {{"fragment", layout_[i].id.value()}, {"error", Explain(kept)}});
  }
}

void OuterSync::KeepRound() {
  if (continuity_.disk == nullptr) return;
  KeptRound* const round = continuity_.disk->BeginRound();
  if (round == nullptr) {
    context_.log.Debug("the state of the last round is still being written; that of this one is not kept");
    return;
  }
  round->epoch = session_->info().member.epoch;
  round->base = follower_.version();
  round->committed_tokens = follower_.plan().committed_tokens;
  round->rewarm_steps = continuity_.rewarm->steps();
  round->rewarm_left = continuity_.rewarm->left();
  const absl::Status saved = replica_->SaveState(round->replica);
  if (saved.ok()) {
    continuity_.disk->SaveRound();
  } else {
    context_.log.Warning("the inner optimizer's state cannot be saved", {{"error", Explain(saved)}});
  }
}

void OuterSync::Settle(ContributionPacker& packer, Verdict verdict) {
  packer.Settle(verdict);
  if (continuity_.disk == nullptr) return;
  // Without it the next life asks the coordinator, so that a failure only costs a question.
  const absl::Status settled = continuity_.disk->SettlePush(packer.offer().key.fragment, verdict);
  if (!settled.ok() && !absl::IsNotFound(settled)) {
    context_.log.Debug("a verdict could not be written down", {{"error", Explain(settled)}});
  }
}

void OuterSync::BeginRewarm() {
  Rewarm& rewarm = *continuity_.rewarm;
  if (!rewarm.cold()) return;
  const bool midway = follower_.plan().committed_tokens > 0;
  rewarm.Begin(midway ? RewarmSteps(session_->info().run.inner) : 0);
  if (rewarm.left() == 0) return;
  context_.log.Info("the inner optimizer is new while the run is not: warming up its learning rate",
                    {{"steps", rewarm.steps()}});
}

void OuterSync::Confirm() {
  if (continuity_.key == nullptr) return;
  const MemberRef& member = session_->info().member;
  for (size_t i = 0; i < layout_.size(); ++i) {
    Confirmation confirmation{.fragment = layout_[i].id,
                              .version = *follower_.fragments()[i].version,
                              .published = follower_.HashBase(i)};
    confirmation.signature = continuity_.key->Sign(ConfirmationText(
        {.run_id = member.run_id, .epoch = member.epoch, .worker = member.worker}, confirmation));
    context_.board->AddConfirmation(confirmation);
  }
}

}  // namespace atoll

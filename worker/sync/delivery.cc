#include "worker/sync/delivery.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "worker/sync/rejection.h"

namespace atoll {
namespace {

DeliveryReport LostBecause(const absl::Status& refusal) {
  const bool not_finite = RejectionOf(refusal) == RefusalReason::kNotFinite;
  return {.verdict = not_finite ? Verdict::kNotFinite : Verdict::kLost, .refusal = refusal};
}

PushResultKind ResultOf(const DeliveryReport& report) {
  switch (report.verdict) {
    case Verdict::kCounted:
      return report.duplicate ? PushResultKind::kDuplicate : PushResultKind::kAccepted;
    case Verdict::kLost:
      return PushResultKind::kRefused;
    case Verdict::kNotFinite:
      break;
  }
  return PushResultKind::kDropped;
}

}  // namespace

absl::StatusOr<DeliveryReport> Delivery::Deliver(const PushOffer& offer, std::span<const std::byte> payload) {
  EnterPhase(context_, WorkerPhase::kPushing);
  const MonoTime begin = context_.clock->Now();
  auto report = Insist(offer, payload);
  if (report.ok()) {
    context_.observer->OnPushed(offer.key.fragment, ResultOf(*report), report->wire_bytes,
                                context_.clock->Now() - begin);
  }
  return report;
}

absl::StatusOr<DeliveryReport> Delivery::Insist(const PushOffer& offer, std::span<const std::byte> payload) {
  CoordinatorConnection* const connection = session_->connection();
  uint64_t from = 0;
  while (true) {
    const auto receipt = connection->Push(session_->info().member, offer, payload, from);
    if (receipt.ok()) {
      patience_->Over();
      return DeliveryReport{.duplicate = receipt->duplicate,
                            .wire_bytes = receipt->wire_bytes,
                            .arrived = receipt->arrived,
                            .expected = receipt->expected};
    }
    if (ReactionTo(receipt.status()) == Reaction::kAdoptHead) {
      patience_->Over();
      return LostBecause(receipt.status());
    }
    ATOLL_RETURN_IF_ERROR(Overcome(receipt.status(), offer));
    ATOLL_ASSIGN_OR_RETURN(const PushStatus status, session_->With([&](const MemberRef& member) {
      return connection->GetPushStatus(member, offer.key);
    }));
    switch (status.fate) {
      case PushFate::kAccepted:
      case PushFate::kCommitted:
        patience_->Over();
        return DeliveryReport{.duplicate = true};
      case PushFate::kMissed:
        patience_->Over();
        return LostBecause(absl::FailedPreconditionError(
            absl::StrFormat("the round on version %d closed without it; the head is %d",
                            offer.key.base.value(), status.head.value())));
      case PushFate::kPartial:
        from = std::min<uint64_t>(status.received_bytes, payload.size());
        break;
      case PushFate::kUnknown:
        from = 0;
        break;
    }
  }
}

absl::Status Delivery::Overcome(const absl::Status& failure, const PushOffer& offer) {
  switch (ReactionTo(failure)) {
    case Reaction::kRejoin:
      return session_->Rejoin(failure);
    case Reaction::kRetry:
    case Reaction::kResume: {
      const std::string what =
          absl::StrFormat("to push the contribution to version %d", offer.key.base.value());
      if (patience_->Pause(failure, what)) return absl::OkStatus();
      return absl::CancelledError(absl::StrFormat("stopped while trying %s", what));
    }
    default:
      return failure;
  }
}

}  // namespace atoll

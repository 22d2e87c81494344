#include "worker/sync/delivery.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/codec.h"
#include "worker/sync/rejection.h"

namespace atoll {
namespace {

/// The coordinator remembers the contributions of at least so many rounds. Asked about an older one, it can
/// only say that it does not know it, although it may have counted.
constexpr uint64_t kRoundsRemembered = 32;

bool IsForgotten(const PushOffer& offer, Version head) {
  return head.value() > offer.key.base.value() + kRoundsRemembered;
}

DeliveryReport Forgotten(Version head) { return {.head = head, .forgotten = true}; }

DeliveryReport LostBecause(const absl::Status& refusal) {
  const bool not_finite = RejectionOf(refusal) == RefusalReason::kNotFinite;
  return {.verdict = not_finite ? Verdict::kNotFinite : Verdict::kLost, .refusal = refusal};
}

/// What became of it, where that is decided.
std::optional<DeliveryReport> VerdictIn(const PushStatus& status, const PushOffer& offer) {
  switch (status.fate) {
    case PushFate::kAccepted:
    case PushFate::kCommitted:
      return DeliveryReport{.duplicate = true, .head = status.head};
    case PushFate::kMissed: {
      if (IsForgotten(offer, status.head)) return Forgotten(status.head);
      DeliveryReport lost = LostBecause(absl::FailedPreconditionError(
          absl::StrFormat("the round on version %d closed without it; the head is %d", offer.key.base.value(),
                          status.head.value())));
      lost.head = status.head;
      return lost;
    }
    case PushFate::kPartial:
    case PushFate::kUnknown:
      break;
  }
  return std::nullopt;
}

PushResultKind ResultOf(const DeliveryReport& report) {
  if (report.forgotten) return PushResultKind::kDropped;
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

bool HasOldCodec(const DeliveryReport& report) {
  return report.verdict == Verdict::kLost && RejectionOf(report.refusal) == RefusalReason::kWrongCodec;
}

void LogOldCodec(const PushOffer& offer, const DeliveryReport& report, const Logger& log) {
  log.Warning("a contribution was refused for its codec; taking the run's configuration again",
              {{"fragment", offer.key.fragment.value()},
               {"base", offer.key.base.value()},
               {"error", Explain(report.refusal)}});
}

absl::StatusOr<DeliveryReport> Delivery::Deliver(const PushOffer& offer, std::span<const std::byte> payload) {
  return Timed(offer, payload, Begin::kBySending);
}

absl::StatusOr<DeliveryReport> Delivery::Resume(const PushOffer& offer, std::span<const std::byte> payload) {
  return Timed(offer, payload, Begin::kByAsking);
}

absl::StatusOr<DeliveryReport> Delivery::Conclude(const PushOffer& offer) {
  return Timed(offer, {}, Begin::kNever);
}

absl::StatusOr<DeliveryReport> Delivery::Timed(const PushOffer& offer, std::span<const std::byte> payload,
                                               Begin begin) {
  EnterPhase(context_, WorkerPhase::kPushing);
  const MonoTime started = context_.clock->Now();
  auto report = begin == Begin::kNever ? AskForVerdict(offer) : Insist(offer, payload, begin);
  if (report.ok()) {
    context_.observer->OnPushed(offer.key.fragment, ResultOf(*report), report->wire_bytes,
                                context_.clock->Now() - started);
    context_.log.Debug("pushed", {{"fragment", offer.key.fragment.value()},
                                  {"base", offer.key.base.value()},
                                  {"counted", report->verdict == Verdict::kCounted && !report->forgotten}});
  }
  return report;
}

absl::StatusOr<DeliveryReport> Delivery::Insist(const PushOffer& offer, std::span<const std::byte> payload,
                                                Begin begin) {
  uint64_t from = 0;
  bool again = false;
  for (bool send = begin == Begin::kBySending;; send = again = true) {
    if (again && context_.board->orders().stop) {
      return absl::CancelledError(absl::StrFormat(
          "stopped before the contribution to version %d was acknowledged", offer.key.base.value()));
    }
    if (send) {
      const MemberRef member = session_->member();
      const auto receipt = connection_->Push(member, offer, payload, from);
      if (receipt.ok()) {
        patience_->Over();
        return DeliveryReport{.duplicate = receipt->duplicate,
                              .wire_bytes = receipt->wire_bytes,
                              .arrived = receipt->arrived,
                              .expected = receipt->expected,
                              .head = receipt->head};
      }
      if (ReactionTo(receipt.status()) == Reaction::kAdoptHead) {
        patience_->Over();
        return LostBecause(receipt.status());
      }
      ATOLL_RETURN_IF_ERROR(Overcome(receipt.status(), offer, member));
    }
    ATOLL_ASSIGN_OR_RETURN(const std::optional<DeliveryReport> report, Ask(offer, payload.size(), &from));
    if (report.has_value()) {
      patience_->Over();
      return report->verdict == Verdict::kLost ? Claim(offer, payload, *report) : *report;
    }
  }
}

DeliveryReport Delivery::Claim(const PushOffer& offer, std::span<const std::byte> payload,
                               const DeliveryReport& missed) {
  // With local data the worker keeps its place itself.
  if (!offer.partition.has_value()) return missed;
  // The header alone: the coordinator refuses it, but hears which samples the content was trained on.
  const auto receipt = connection_->Push(session_->member(), offer, payload, payload.size());
  if (!receipt.ok()) return missed;
  return {.duplicate = receipt->duplicate, .wire_bytes = receipt->wire_bytes, .head = receipt->head};
}

absl::StatusOr<PushStatus> Delivery::AskForStatus(const PushOffer& offer) {
  return session_->With(
      [&](const MemberRef& member) { return connection_->GetPushStatus(member, offer.key); }, connection_);
}

absl::StatusOr<std::optional<DeliveryReport>> Delivery::Ask(const PushOffer& offer, uint64_t payload_bytes,
                                                            uint64_t* from) {
  ATOLL_ASSIGN_OR_RETURN(const PushStatus status, AskForStatus(offer));
  const bool partial = status.fate == PushFate::kPartial;
  *from = partial ? std::min<uint64_t>(status.received_bytes, payload_bytes) : 0;
  return VerdictIn(status, offer);
}

absl::StatusOr<DeliveryReport> Delivery::AskForVerdict(const PushOffer& offer) {
  while (true) {
    ATOLL_ASSIGN_OR_RETURN(const PushStatus status, AskForStatus(offer));
    std::optional<DeliveryReport> report = VerdictIn(status, offer);
    // Without a byte that is staged, "partial" is an upload that is being accepted at this moment.
    const bool being_accepted = status.fate == PushFate::kPartial && status.received_bytes == 0;
    if (!report.has_value() && !being_accepted && IsForgotten(offer, status.head)) {
      report = Forgotten(status.head);
    } else if (!report.has_value() && !being_accepted) {
      report = LostBecause(absl::FailedPreconditionError(
          absl::StrFormat("the coordinator does not have it and takes nothing more in codec %s",
                          std::string(CodecName(offer.codec)))));
      report->head = status.head;
      report->open = true;
    }
    if (report.has_value()) {
      patience_->Over();
      return *std::move(report);
    }
    const std::string what =
        absl::StrFormat("to learn what became of the contribution to version %d", offer.key.base.value());
    if (!patience_->Pause(absl::UnavailableError("it is just being accepted"), what)) {
      return absl::CancelledError(absl::StrFormat("stopped while trying %s", what));
    }
  }
}

absl::Status Delivery::Overcome(const absl::Status& failure, const PushOffer& offer, const MemberRef& used) {
  switch (ReactionTo(failure)) {
    case Reaction::kRejoin:
      return session_->RejoinAs(used, failure, connection_);
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

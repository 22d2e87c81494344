#include "client/sync/delivery.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_format.h"
#include "client/sync/rejection.h"
#include "common/status.h"
#include "core/codec.h"
#include "core/contribution.h"

namespace atl {
namespace {

/// The coordinator remembers the contributions of at least so many rounds. Asked about an older one, it can
/// only say that it does not know it, although it may have counted.
constexpr uint64_t kRoundsRemembered = 32;

/// How often a push whose header seems to have been damaged on the way is sent again.
constexpr int kMaxDamaged = 3;

bool IsForgotten(const PushHeader& header, Version head) {
  return head.value() > header.key.base.value() + kRoundsRemembered;
}

DeliveryReport Forgotten(Version head) { return {.head = head, .forgotten = true}; }

DeliveryReport LostBecause(const absl::Status& rejection) {
  const bool not_finite = RejectionReasonOf(rejection) == RejectionReason::kNotFinite;
  return {.verdict = not_finite ? Verdict::kNotFinite : Verdict::kLost, .rejection = rejection};
}

/// What became of it, where that is decided.
std::optional<DeliveryReport> VerdictIn(const PushStatusReply& status, const PushHeader& header) {
  switch (status.stage) {
    case PushStage::kAccepted:
    case PushStage::kCommitted:
      return DeliveryReport{.duplicate = true, .head = status.head};
    case PushStage::kMissed: {
      if (IsForgotten(header, status.head)) return Forgotten(status.head);
      DeliveryReport lost = LostBecause(absl::FailedPreconditionError(
          absl::StrFormat("the round on version %d closed without it; the head is %d",
                          header.key.base.value(), status.head.value())));
      lost.head = status.head;
      return lost;
    }
    case PushStage::kPartial:
    case PushStage::kUnknown:
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
      return PushResultKind::kRejected;
    case Verdict::kNotFinite:
      break;
  }
  return PushResultKind::kDropped;
}

}  // namespace

bool HasOldCodec(const DeliveryReport& report) {
  return report.verdict == Verdict::kLost &&
         RejectionReasonOf(report.rejection) == RejectionReason::kWrongCodec;
}

void LogOldCodec(const PushHeader& header, const DeliveryReport& report, const Logger& log) {
  log.Warning("a contribution was refused for its codec; taking the run's configuration again",
              {{"fragment", header.key.fragment.value()},
               {"base", header.key.base.value()},
               {"error", Explain(report.rejection)}});
}

void LogLost(const PushHeader& header, const DeliveryReport& report, const Logger& log) {
  log.Warning("a contribution was refused; its content goes into the next one",
              {{"fragment", header.key.fragment.value()},
               {"base", header.key.base.value()},
               {"error", Explain(report.rejection)}});
}

absl::StatusOr<DeliveryReport> Delivery::Deliver(const PushHeader& header,
                                                 std::span<const std::byte> payload) {
  return Timed(header, payload, Begin::kBySending);
}

absl::StatusOr<DeliveryReport> Delivery::Resume(const PushHeader& header,
                                                std::span<const std::byte> payload) {
  return Timed(header, payload, Begin::kByAsking);
}

absl::StatusOr<DeliveryReport> Delivery::Conclude(const PushHeader& header) {
  return Timed(header, {}, Begin::kNever);
}

absl::StatusOr<DeliveryReport> Delivery::Timed(const PushHeader& header, std::span<const std::byte> payload,
                                               Begin begin) {
  EnterPhase(context_, WorkerPhase::kPushing);
  const MonoTime started = context_.clock->Now();
  auto report = begin == Begin::kNever ? AskForVerdict(header) : RetryLoop(header, payload, begin);
  if (report.ok()) {
    context_.observer->OnPushed(header.key.fragment, ResultOf(*report), report->wire_bytes,
                                context_.clock->Now() - started);
    context_.log.Debug("pushed", {{"fragment", header.key.fragment.value()},
                                  {"base", header.key.base.value()},
                                  {"counted", report->verdict == Verdict::kCounted && !report->forgotten}});
  }
  return report;
}

bool Delivery::RejectedForLoss(const absl::Status& rejection, PushHeader& header) const {
  const bool at_fault = std::isfinite(header.mean_loss) && !IsPlausibleLoss(header.mean_loss);
  if (!at_fault || RejectionReasonOf(rejection) != RejectionReason::kNotFinite) return false;
  context_.log.Warning("a contribution was rejected, maybe for its loss; sending it again without the loss",
                       {{"fragment", header.key.fragment.value()},
                        {"base", header.key.base.value()},
                        {"loss", header.mean_loss},
                        {"error", Explain(rejection)}});
  header.mean_loss = 0;
  return true;
}

absl::StatusOr<DeliveryReport> Delivery::RetryLoop(PushHeader header, std::span<const std::byte> payload,
                                                   Begin begin) {
  uint64_t from = 0;
  bool again = false;
  int damaged = 0;
  for (bool send = begin == Begin::kBySending;; send = again = true) {
    if (again && context_.worker_status->commands().stop) {
      return absl::CancelledError(absl::StrFormat(
          "stopped before the contribution to version %d was acknowledged", header.key.base.value()));
    }
    if (send) {
      const MemberRef member = session_->member();
      const auto receipt = connection_->Push(member, header, payload, from);
      if (receipt.ok()) {
        retry_policy_->Over();
        return DeliveryReport{.duplicate = receipt->duplicate,
                              .wire_bytes = receipt->wire_bytes,
                              .arrived = receipt->arrived,
                              .expected = receipt->expected,
                              .head = receipt->head};
      }
      if (RejectedForLoss(receipt.status(), header)) continue;
      absl::Status failure = receipt.status();
      if (RejectionReasonOf(failure) == RejectionReason::kUnknownBase && damaged++ < kMaxDamaged) {
        ATOLL_ASSIGN_OR_RETURN(failure, IfDamaged(failure, header));
      }
      if (ReactionTo(failure) == Reaction::kAdoptHead) {
        retry_policy_->Over();
        return LostBecause(failure);
      }
      ATOLL_RETURN_IF_ERROR(Overcome(failure, header, member));
    }
    ATOLL_ASSIGN_OR_RETURN(const std::optional<DeliveryReport> report, Ask(header, payload.size(), &from));
    if (report.has_value()) {
      retry_policy_->Over();
      return report->verdict == Verdict::kLost ? Claim(header, payload, *report) : *report;
    }
  }
}

absl::StatusOr<absl::Status> Delivery::IfDamaged(const absl::Status& rejection, const PushHeader& header) {
  ATOLL_ASSIGN_OR_RETURN(const PushStatusReply status, AskForStatus(header));
  if (status.head < header.key.base) return rejection;
  return absl::UnavailableError(
      absl::StrFormat("the push has base version %d and the head is %d, but another base arrived: its header "
                      "was damaged on the way, which TLS would have found (%s)",
                      header.key.base.value(), status.head.value(), std::string(rejection.message())));
}

DeliveryReport Delivery::Claim(const PushHeader& header, std::span<const std::byte> payload,
                               const DeliveryReport& missed) {
  // With local data the worker keeps its place itself.
  if (!header.partition.has_value()) return missed;
  // The header alone: the coordinator refuses it, but hears which samples the content was trained on.
  const auto receipt = connection_->Push(session_->member(), header, payload, payload.size());
  if (!receipt.ok()) return missed;
  return {.duplicate = receipt->duplicate, .wire_bytes = receipt->wire_bytes, .head = receipt->head};
}

absl::StatusOr<PushStatusReply> Delivery::AskForStatus(const PushHeader& header) {
  return session_->With(
      [&](const MemberRef& member) { return connection_->GetPushStatus(member, header.key); }, connection_);
}

absl::StatusOr<std::optional<DeliveryReport>> Delivery::Ask(const PushHeader& header, uint64_t payload_bytes,
                                                            uint64_t* from) {
  ATOLL_ASSIGN_OR_RETURN(const PushStatusReply status, AskForStatus(header));
  const bool partial = status.stage == PushStage::kPartial;
  *from = partial ? std::min<uint64_t>(status.received_bytes, payload_bytes) : 0;
  return VerdictIn(status, header);
}

absl::StatusOr<DeliveryReport> Delivery::AskForVerdict(const PushHeader& header) {
  while (true) {
    ATOLL_ASSIGN_OR_RETURN(const PushStatusReply status, AskForStatus(header));
    std::optional<DeliveryReport> report = VerdictIn(status, header);
    // Without a byte that is staged, "partial" is an upload that is being accepted at this moment.
    const bool being_accepted = status.stage == PushStage::kPartial && status.received_bytes == 0;
    if (!report.has_value() && !being_accepted && IsForgotten(header, status.head)) {
      report = Forgotten(status.head);
    } else if (!report.has_value() && !being_accepted) {
      report = LostBecause(absl::FailedPreconditionError(
          absl::StrFormat("the coordinator does not have it and takes nothing more in codec %s",
                          std::string(CodecName(header.codec)))));
      report->head = status.head;
      report->open = true;
    }
    if (report.has_value()) {
      retry_policy_->Over();
      return *std::move(report);
    }
    const std::string what =
        absl::StrFormat("to learn what became of the contribution to version %d", header.key.base.value());
    if (!retry_policy_->Pause(absl::UnavailableError("it is just being accepted"), what)) {
      return absl::CancelledError(absl::StrFormat("stopped while trying %s", what));
    }
  }
}

absl::Status Delivery::Overcome(const absl::Status& failure, const PushHeader& header,
                                const MemberRef& used) {
  if (session_->IsSupersededByItself(used, failure)) return absl::OkStatus();
  switch (ReactionTo(failure)) {
    case Reaction::kRejoin:
      return session_->RejoinAs(used, failure, connection_);
    case Reaction::kRetry:
    case Reaction::kResume: {
      const std::string what =
          absl::StrFormat("to push the contribution to version %d", header.key.base.value());
      if (retry_policy_->Pause(failure, what)) return absl::OkStatus();
      return absl::CancelledError(absl::StrFormat("stopped while trying %s", what));
    }
    default:
      return failure;
  }
}

}  // namespace atl

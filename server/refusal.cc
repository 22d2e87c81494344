#include "server/refusal.h"

#include <array>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/status_detail.h"

namespace atoll {
namespace {

struct ReasonRow {
  RefusalReason reason;
  absl::StatusCode code;
};

using enum RefusalReason;

constexpr std::array kCodes = {
    ReasonRow{kProtocolMismatch, absl::StatusCode::kFailedPrecondition},
    ReasonRow{kWrongRun, absl::StatusCode::kFailedPrecondition},
    ReasonRow{kWrongEpoch, absl::StatusCode::kFailedPrecondition},
    ReasonRow{kSuperseded, absl::StatusCode::kFailedPrecondition},
    ReasonRow{kNotAMember, absl::StatusCode::kNotFound},
    ReasonRow{kNameTaken, absl::StatusCode::kAlreadyExists},
    ReasonRow{kBanned, absl::StatusCode::kPermissionDenied},
    ReasonRow{kManifestMismatch, absl::StatusCode::kFailedPrecondition},
    ReasonRow{kDatasetMismatch, absl::StatusCode::kFailedPrecondition},
    ReasonRow{kStaleBase, absl::StatusCode::kFailedPrecondition},
    ReasonRow{kUnknownBase, absl::StatusCode::kInvalidArgument},
    ReasonRow{kWrongCodec, absl::StatusCode::kInvalidArgument},
    ReasonRow{kWrongSize, absl::StatusCode::kInvalidArgument},
    ReasonRow{kWrongFragment, absl::StatusCode::kInvalidArgument},
    ReasonRow{kBadChunk, absl::StatusCode::kDataLoss},
    ReasonRow{kNotFinite, absl::StatusCode::kInvalidArgument},
    ReasonRow{kAlreadyPushed, absl::StatusCode::kAlreadyExists},
    ReasonRow{kNotSeeded, absl::StatusCode::kFailedPrecondition},
    ReasonRow{kOverBudget, absl::StatusCode::kResourceExhausted},
    ReasonRow{kStorageFull, absl::StatusCode::kResourceExhausted},
    ReasonRow{kStorageFailing, absl::StatusCode::kUnavailable},
    ReasonRow{kShuttingDown, absl::StatusCode::kUnavailable},
};

}  // namespace

absl::StatusCode RefusalCode(RefusalReason reason) {
  for (const ReasonRow& row : kCodes) {
    if (row.reason == reason) return row.code;
  }
  return absl::StatusCode::kUnknown;
}

absl::Status Refuse(RefusalReason reason, std::string_view message) {
  return Refuse(Refusal{.reason = reason, .metadata = {}, .retry_after = std::nullopt}, message);
}

absl::Status Refuse(const Refusal& refusal, std::string_view message) {
  return WithDetail(absl::Status(RefusalCode(refusal.reason), std::string(message)),
                    StatusDetail{.reason = std::string(RefusalReasonName(refusal.reason)),
                                 .metadata = refusal.metadata,
                                 .retry_after = refusal.retry_after});
}

absl::Status ShuttingDown() {
  return Refuse(RefusalReason::kShuttingDown, "the coordinator is shutting down; re-attach when it is back");
}

absl::Status WrongEpoch(const WorkerName& worker, Epoch of_caller, Epoch of_run) {
  return Refuse(
      RefusalReason::kWrongEpoch,
      absl::StrFormat("worker '%s' is of epoch %016x, the run of %016x: it was restored meanwhile; drop "
                      "local progress and join again",
                      worker, of_caller.value(), of_run.value()));
}

absl::Status WithRetryAfter(absl::Status status, Duration retry_after) {
  StatusDetail detail = DetailOf(status).value_or(StatusDetail{});
  detail.retry_after = retry_after;
  return WithDetail(std::move(status), detail);
}

std::optional<Refusal> RefusalOf(const absl::Status& status) {
  const std::optional<StatusDetail> detail = DetailOf(status);
  if (!detail) return std::nullopt;
  return Refusal{.reason = ParseRefusalReason(detail->reason),
                 .metadata = detail->metadata,
                 .retry_after = detail->retry_after};
}

RefusalReason ReasonOf(const absl::Status& status) {
  const std::optional<Refusal> refusal = RefusalOf(status);
  return refusal ? refusal->reason : kNone;
}

}  // namespace atoll

#include "server/rejection.h"

#include <array>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/status_detail.h"

namespace atl {
namespace {

struct ReasonRow {
  RejectionReason reason;
  absl::StatusCode code;
};

using enum RejectionReason;

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

absl::StatusCode RejectionCode(RejectionReason reason) {
  for (const ReasonRow& row : kCodes) {
    if (row.reason == reason) return row.code;
  }
  return absl::StatusCode::kUnknown;
}

absl::Status Reject(RejectionReason reason, std::string_view message) {
  return Reject(Rejection{.reason = reason, .metadata = {}, .retry_after = std::nullopt}, message);
}

absl::Status Reject(const Rejection& rejection, std::string_view message) {
  return WithDetail(absl::Status(RejectionCode(rejection.reason), std::string(message)),
                    StatusDetail{.reason = std::string(RejectionReasonName(rejection.reason)),
                                 .metadata = rejection.metadata,
                                 .retry_after = rejection.retry_after});
}

absl::Status ShuttingDown() {
  return Reject(RejectionReason::kShuttingDown,
                "the coordinator is shutting down; re-attach when it is back");
}

absl::Status WrongEpoch(const WorkerName& worker, Epoch of_caller, Epoch of_run) {
  return Reject(
      RejectionReason::kWrongEpoch,
      absl::StrFormat("worker '%s' is of epoch %016x, the run of %016x: it was restored meanwhile; drop "
                      "local progress and join again",
                      worker, of_caller.value(), of_run.value()));
}

absl::Status WithRetryAfter(absl::Status status, Duration retry_after) {
  StatusDetail detail = DetailOf(status).value_or(StatusDetail{});
  detail.retry_after = retry_after;
  return WithDetail(std::move(status), detail);
}

std::optional<Rejection> RejectionOf(const absl::Status& status) {
  const std::optional<StatusDetail> detail = DetailOf(status);
  if (!detail) return std::nullopt;
  return Rejection{.reason = ParseRejectionReason(detail->reason),
                   .metadata = detail->metadata,
                   .retry_after = detail->retry_after};
}

RejectionReason ReasonOf(const absl::Status& status) {
  const std::optional<Rejection> rejection = RejectionOf(status);
  return rejection ? rejection->reason : kNone;
}

}  // namespace atl

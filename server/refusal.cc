#include "server/refusal.h"

#include <array>
#include <utility>

#include "common/status_detail.h"

namespace atoll {
namespace {

struct ReasonRow {
  RefusalReason reason;
  std::string_view name;
  absl::StatusCode code;
};

using enum RefusalReason;

constexpr std::array kReasons = {
    ReasonRow{kProtocolMismatch, "PROTOCOL_MISMATCH", absl::StatusCode::kFailedPrecondition},
    ReasonRow{kWrongRun, "WRONG_RUN", absl::StatusCode::kFailedPrecondition},
    ReasonRow{kWrongEpoch, "WRONG_EPOCH", absl::StatusCode::kFailedPrecondition},
    ReasonRow{kSuperseded, "SUPERSEDED", absl::StatusCode::kFailedPrecondition},
    ReasonRow{kNotAMember, "NOT_A_MEMBER", absl::StatusCode::kNotFound},
    ReasonRow{kNameTaken, "NAME_TAKEN", absl::StatusCode::kAlreadyExists},
    ReasonRow{kManifestMismatch, "MANIFEST_MISMATCH", absl::StatusCode::kFailedPrecondition},
    ReasonRow{kDatasetMismatch, "DATASET_MISMATCH", absl::StatusCode::kFailedPrecondition},
    ReasonRow{kStaleBase, "STALE_BASE", absl::StatusCode::kFailedPrecondition},
    ReasonRow{kUnknownBase, "UNKNOWN_BASE", absl::StatusCode::kInvalidArgument},
    ReasonRow{kWrongCodec, "WRONG_CODEC", absl::StatusCode::kInvalidArgument},
    ReasonRow{kWrongSize, "WRONG_SIZE", absl::StatusCode::kInvalidArgument},
    ReasonRow{kWrongFragment, "WRONG_FRAGMENT", absl::StatusCode::kInvalidArgument},
    ReasonRow{kBadChunk, "BAD_CHUNK", absl::StatusCode::kDataLoss},
    ReasonRow{kNotFinite, "NOT_FINITE", absl::StatusCode::kInvalidArgument},
    ReasonRow{kAlreadyPushed, "ALREADY_PUSHED", absl::StatusCode::kAlreadyExists},
    ReasonRow{kNotSeeded, "NOT_SEEDED", absl::StatusCode::kFailedPrecondition},
    ReasonRow{kOverBudget, "OVER_BUDGET", absl::StatusCode::kResourceExhausted},
    ReasonRow{kStorageFull, "STORAGE_FULL", absl::StatusCode::kResourceExhausted},
    ReasonRow{kShuttingDown, "SHUTTING_DOWN", absl::StatusCode::kUnavailable},
};

RefusalReason ReasonNamed(std::string_view name) {
  for (const ReasonRow& row : kReasons) {
    if (row.name == name) return row.reason;
  }
  return kNone;
}

}  // namespace

std::string_view RefusalReasonName(RefusalReason reason) {
  for (const ReasonRow& row : kReasons) {
    if (row.reason == reason) return row.name;
  }
  return "";
}

absl::StatusCode RefusalCode(RefusalReason reason) {
  for (const ReasonRow& row : kReasons) {
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

absl::Status WithRetryAfter(absl::Status status, Duration retry_after) {
  StatusDetail detail = DetailOf(status).value_or(StatusDetail{});
  detail.retry_after = retry_after;
  return WithDetail(std::move(status), detail);
}

std::optional<Refusal> RefusalOf(const absl::Status& status) {
  const std::optional<StatusDetail> detail = DetailOf(status);
  if (!detail) return std::nullopt;
  return Refusal{.reason = ReasonNamed(detail->reason),
                 .metadata = detail->metadata,
                 .retry_after = detail->retry_after};
}

RefusalReason ReasonOf(const absl::Status& status) {
  const std::optional<Refusal> refusal = RefusalOf(status);
  return refusal ? refusal->reason : kNone;
}

}  // namespace atoll

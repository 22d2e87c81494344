#include "worker/sync/rejection.h"

#include <array>
#include <string>
#include <utility>

#include "common/status_detail.h"

namespace atoll {
namespace {

struct Row {
  RejectionReason reason;
  std::string_view name;
  Reaction reaction;
};

constexpr std::array kRows = {
    Row{RejectionReason::kProtocolMismatch, "PROTOCOL_MISMATCH", Reaction::kExit},
    Row{RejectionReason::kWrongRun, "WRONG_RUN", Reaction::kExit},
    Row{RejectionReason::kWrongEpoch, "WRONG_EPOCH", Reaction::kRejoin},
    Row{RejectionReason::kSuperseded, "SUPERSEDED", Reaction::kExit},
    Row{RejectionReason::kNotAMember, "NOT_A_MEMBER", Reaction::kRejoin},
    Row{RejectionReason::kNameTaken, "NAME_TAKEN", Reaction::kExit},
    Row{RejectionReason::kManifestMismatch, "MANIFEST_MISMATCH", Reaction::kExit},
    Row{RejectionReason::kDatasetMismatch, "DATASET_MISMATCH", Reaction::kExit},
    Row{RejectionReason::kStaleBase, "STALE_BASE", Reaction::kAdoptHead},
    Row{RejectionReason::kUnknownBase, "UNKNOWN_BASE", Reaction::kAdoptHead},
    Row{RejectionReason::kWrongCodec, "WRONG_CODEC", Reaction::kExit},
    Row{RejectionReason::kWrongSize, "WRONG_SIZE", Reaction::kExit},
    Row{RejectionReason::kWrongFragment, "WRONG_FRAGMENT", Reaction::kExit},
    Row{RejectionReason::kBadChunk, "BAD_CHUNK", Reaction::kResume},
    Row{RejectionReason::kNotFinite, "NOT_FINITE", Reaction::kAdoptHead},
    Row{RejectionReason::kAlreadyPushed, "ALREADY_PUSHED", Reaction::kAdoptHead},
    Row{RejectionReason::kNotSeeded, "NOT_SEEDED", Reaction::kRetry},
    Row{RejectionReason::kOverBudget, "OVER_BUDGET", Reaction::kRetry},
    Row{RejectionReason::kStorageFull, "STORAGE_FULL", Reaction::kRetry},
    Row{RejectionReason::kShuttingDown, "SHUTTING_DOWN", Reaction::kRetry},
};

const Row* FindRow(RejectionReason reason) {
  for (const Row& row : kRows) {
    if (row.reason == reason) return &row;
  }
  return nullptr;
}

Reaction ReactionToCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kInternal:
      return Reaction::kRetry;
    case absl::StatusCode::kDataLoss:
      return Reaction::kResume;
    default:
      return Reaction::kExit;
  }
}

}  // namespace

std::string_view RejectionReasonName(RejectionReason reason) {
  const Row* row = FindRow(reason);
  return row == nullptr ? std::string_view() : row->name;
}

RejectionReason ParseRejectionReason(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.reason;
  }
  return RejectionReason::kNone;
}

absl::Status WithRejection(absl::Status status, RejectionReason reason) {
  if (reason == RejectionReason::kNone) return status;
  StatusDetail detail = DetailOf(status).value_or(StatusDetail());
  detail.reason = std::string(RejectionReasonName(reason));
  return WithDetail(std::move(status), detail);
}

RejectionReason RejectionOf(const absl::Status& status) {
  const auto detail = DetailOf(status);
  return detail.has_value() ? ParseRejectionReason(detail->reason) : RejectionReason::kNone;
}

std::optional<Duration> RetryDelayOf(const absl::Status& status) {
  const auto detail = DetailOf(status);
  return detail.has_value() ? detail->retry_after : std::nullopt;
}

Reaction ReactionTo(const absl::Status& status) {
  const Row* row = FindRow(RejectionOf(status));
  return row == nullptr ? ReactionToCode(status.code()) : row->reaction;
}

std::string Explain(const absl::Status& status) {
  return status.ToString(absl::StatusToStringMode::kWithNoExtraData);
}

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (RejectionOf(status)) {
    case RejectionReason::kDatasetMismatch:
      return ExitCode::kBadFiles;
    case RejectionReason::kWrongCodec:
    case RejectionReason::kWrongSize:
    case RejectionReason::kWrongFragment:
      return ExitCode::kInternal;
    case RejectionReason::kProtocolMismatch:
    case RejectionReason::kWrongRun:
    case RejectionReason::kSuperseded:
    case RejectionReason::kNameTaken:
    case RejectionReason::kManifestMismatch:
      return ExitCode::kRefused;
    default:
      return DefaultExitCode(status);
  }
}

}  // namespace atoll

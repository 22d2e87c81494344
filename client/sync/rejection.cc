#include "client/sync/rejection.h"

#include <array>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_format.h"
#include "common/status_detail.h"

namespace atl {
namespace {

constexpr char kPermanentUrl[] = "atoll.looks-permanent";
// A reason that no coordinator gives.
constexpr std::string_view kDistrust = "COORDINATOR_UNTRUSTED";

struct Row {
  RejectionReason reason;
  Reaction reaction;
};

constexpr std::array kRows = {
    Row{RejectionReason::kProtocolMismatch, Reaction::kExit},
    Row{RejectionReason::kWrongRun, Reaction::kExit},
    Row{RejectionReason::kWrongEpoch, Reaction::kRejoin},
    Row{RejectionReason::kSuperseded, Reaction::kExit},
    Row{RejectionReason::kNotAMember, Reaction::kRejoin},
    Row{RejectionReason::kNameTaken, Reaction::kExit},
    Row{RejectionReason::kBanned, Reaction::kExit},
    Row{RejectionReason::kManifestMismatch, Reaction::kExit},
    Row{RejectionReason::kDatasetMismatch, Reaction::kExit},
    Row{RejectionReason::kStaleBase, Reaction::kAdoptHead},
    Row{RejectionReason::kUnknownBase, Reaction::kAdoptHead},
    Row{RejectionReason::kWrongCodec, Reaction::kAdoptHead},
    Row{RejectionReason::kWrongSize, Reaction::kExit},
    Row{RejectionReason::kWrongFragment, Reaction::kExit},
    Row{RejectionReason::kBadChunk, Reaction::kResume},
    Row{RejectionReason::kNotFinite, Reaction::kAdoptHead},
    Row{RejectionReason::kAlreadyPushed, Reaction::kAdoptHead},
    Row{RejectionReason::kNotSeeded, Reaction::kRetry},
    Row{RejectionReason::kOverBudget, Reaction::kRetry},
    Row{RejectionReason::kStorageFull, Reaction::kRetry},
    Row{RejectionReason::kStorageFailing, Reaction::kRetry},
    Row{RejectionReason::kShuttingDown, Reaction::kRetry},
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
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kUnimplemented:
      return Reaction::kRetry;
    case absl::StatusCode::kDataLoss:
      return Reaction::kResume;
    default:
      return Reaction::kExit;
  }
}

}  // namespace

absl::Status WithRejection(absl::Status status, RejectionReason reason) {
  if (reason == RejectionReason::kNone) return status;
  StatusDetail detail = DetailOf(status).value_or(StatusDetail());
  detail.reason = std::string(RejectionReasonName(reason));
  return WithDetail(std::move(status), detail);
}

RejectionReason RejectionReasonOf(const absl::Status& status) {
  const auto detail = DetailOf(status);
  return detail.has_value() ? ParseRejectionReason(detail->reason) : RejectionReason::kNone;
}

absl::Status Distrust(const std::string& why) {
  StatusDetail detail;
  detail.reason = std::string(kDistrust);
  return WithDetail(absl::PermissionDeniedError(why), detail);
}

absl::Status WentBack(FragmentId fragment, Version from, Version to) {
  return WithRejection(absl::AbortedError(absl::StrFormat(
                           "the coordinator went back from version %d to %d of fragment %d in one epoch: its "
                           "data directory is "
                           "an older copy of itself, and the versions from %d to %d are lost",
                           from.value(), to.value(), fragment.value(), to.value() + 1, from.value())),
                       RejectionReason::kWrongEpoch);
}

std::optional<Duration> RetryDelayOf(const absl::Status& status) {
  const auto detail = DetailOf(status);
  return detail.has_value() ? detail->retry_after : std::nullopt;
}

Reaction ReactionTo(const absl::Status& status) {
  const Row* row = FindRow(RejectionReasonOf(status));
  return row == nullptr ? ReactionToCode(status.code()) : row->reaction;
}

absl::Status MarkPermanent(absl::Status status) {
  status.SetPayload(kPermanentUrl, absl::Cord());
  return status;
}

bool LooksPermanent(const absl::Status& status) { return status.GetPayload(kPermanentUrl).has_value(); }

std::string Explain(const absl::Status& status) {
  return status.ToString(absl::StatusToStringMode::kWithNoExtraData);
}

ExitCode ExitCodeOf(const absl::Status& status) {
  const auto detail = DetailOf(status);
  if (detail.has_value() && detail->reason == kDistrust) return ExitCode::kUntrusted;
  switch (RejectionReasonOf(status)) {
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
    case RejectionReason::kBanned:
    case RejectionReason::kManifestMismatch:
      return ExitCode::kRejected;
    default:
      return DefaultExitCode(status);
  }
}

}  // namespace atl

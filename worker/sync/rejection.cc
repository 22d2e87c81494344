#include "worker/sync/rejection.h"

#include <array>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_format.h"
#include "common/status_detail.h"

namespace atoll {
namespace {

constexpr char kPermanentUrl[] = "atoll.looks-permanent";
// A reason that no coordinator gives.
constexpr std::string_view kDistrust = "COORDINATOR_UNTRUSTED";

struct Row {
  RefusalReason reason;
  Reaction reaction;
};

constexpr std::array kRows = {
    Row{RefusalReason::kProtocolMismatch, Reaction::kExit},
    Row{RefusalReason::kWrongRun, Reaction::kExit},
    Row{RefusalReason::kWrongEpoch, Reaction::kRejoin},
    Row{RefusalReason::kSuperseded, Reaction::kExit},
    Row{RefusalReason::kNotAMember, Reaction::kRejoin},
    Row{RefusalReason::kNameTaken, Reaction::kExit},
    Row{RefusalReason::kBanned, Reaction::kExit},
    Row{RefusalReason::kManifestMismatch, Reaction::kExit},
    Row{RefusalReason::kDatasetMismatch, Reaction::kExit},
    Row{RefusalReason::kStaleBase, Reaction::kAdoptHead},
    Row{RefusalReason::kUnknownBase, Reaction::kAdoptHead},
    Row{RefusalReason::kWrongCodec, Reaction::kAdoptHead},
    Row{RefusalReason::kWrongSize, Reaction::kExit},
    Row{RefusalReason::kWrongFragment, Reaction::kExit},
    Row{RefusalReason::kBadChunk, Reaction::kResume},
    Row{RefusalReason::kNotFinite, Reaction::kAdoptHead},
    Row{RefusalReason::kAlreadyPushed, Reaction::kAdoptHead},
    Row{RefusalReason::kNotSeeded, Reaction::kRetry},
    Row{RefusalReason::kOverBudget, Reaction::kRetry},
    Row{RefusalReason::kStorageFull, Reaction::kRetry},
    Row{RefusalReason::kStorageFailing, Reaction::kRetry},
    Row{RefusalReason::kShuttingDown, Reaction::kRetry},
};

const Row* FindRow(RefusalReason reason) {
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

absl::Status WithRejection(absl::Status status, RefusalReason reason) {
  if (reason == RefusalReason::kNone) return status;
  StatusDetail detail = DetailOf(status).value_or(StatusDetail());
  detail.reason = std::string(RefusalReasonName(reason));
  return WithDetail(std::move(status), detail);
}

RefusalReason RejectionOf(const absl::Status& status) {
  const auto detail = DetailOf(status);
  return detail.has_value() ? ParseRefusalReason(detail->reason) : RefusalReason::kNone;
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
                       RefusalReason::kWrongEpoch);
}

std::optional<Duration> RetryDelayOf(const absl::Status& status) {
  const auto detail = DetailOf(status);
  return detail.has_value() ? detail->retry_after : std::nullopt;
}

Reaction ReactionTo(const absl::Status& status) {
  const Row* row = FindRow(RejectionOf(status));
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
  switch (RejectionOf(status)) {
    case RefusalReason::kDatasetMismatch:
      return ExitCode::kBadFiles;
    case RefusalReason::kWrongCodec:
    case RefusalReason::kWrongSize:
    case RefusalReason::kWrongFragment:
      return ExitCode::kInternal;
    case RefusalReason::kProtocolMismatch:
    case RefusalReason::kWrongRun:
    case RefusalReason::kSuperseded:
    case RefusalReason::kNameTaken:
    case RefusalReason::kBanned:
    case RefusalReason::kManifestMismatch:
      return ExitCode::kRefused;
    default:
      return DefaultExitCode(status);
  }
}

}  // namespace atoll

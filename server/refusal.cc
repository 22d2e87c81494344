#include "server/refusal.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "absl/strings/cord.h"

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

// Keys of the payload's lines; metadata keys are written with a prefix, so that they cannot collide.
constexpr std::string_view kReasonKey = "reason";
constexpr std::string_view kRetryKey = "retry_ns";
constexpr std::string_view kMetadataPrefix = "m.";

RefusalReason ReasonNamed(std::string_view name) {
  for (const ReasonRow& row : kReasons) {
    if (row.name == name) return row.reason;
  }
  return kNone;
}

void Attach(absl::Status& status, const Refusal& refusal) {
  std::string text;
  const auto line = [&](std::string_view key, std::string_view value) {
    text.append(key).append("=").append(value).append("\n");
  };
  if (refusal.reason != kNone) line(kReasonKey, RefusalReasonName(refusal.reason));
  if (refusal.retry_after) line(kRetryKey, std::to_string(refusal.retry_after->count()));
  for (const auto& [key, value] : refusal.metadata) line(std::string(kMetadataPrefix) + key, value);
  status.SetPayload(kRefusalPayloadUrl, absl::Cord(text));
}

void ReadLine(std::string_view key, std::string_view value, Refusal& refusal) {
  if (key == kReasonKey) {
    refusal.reason = ReasonNamed(value);
  } else if (key == kRetryKey) {
    int64_t nanoseconds = 0;
    std::from_chars(value.data(), value.data() + value.size(), nanoseconds);
    refusal.retry_after = Duration(nanoseconds);
  } else if (key.substr(0, kMetadataPrefix.size()) == kMetadataPrefix) {
    refusal.metadata.emplace(key.substr(kMetadataPrefix.size()), value);
  }
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
  absl::Status status(RefusalCode(refusal.reason), std::string(message));
  Attach(status, refusal);
  return status;
}

absl::Status WithRetryAfter(absl::Status status, Duration retry_after) {
  Refusal refusal = RefusalOf(status).value_or(Refusal{});
  refusal.retry_after = retry_after;
  Attach(status, refusal);
  return status;
}

std::optional<Refusal> RefusalOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kRefusalPayloadUrl);
  if (!payload) return std::nullopt;
  const std::string text(*payload);
  Refusal refusal;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (const size_t equals = line.find('='); equals != std::string_view::npos) {
      ReadLine(line.substr(0, equals), line.substr(equals + 1), refusal);
    }
    begin = end + 1;
  }
  return refusal;
}

RefusalReason ReasonOf(const absl::Status& status) {
  const std::optional<Refusal> refusal = RefusalOf(status);
  return refusal ? refusal->reason : kNone;
}

}  // namespace atoll

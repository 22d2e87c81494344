#include "common/status_detail.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace atl {
namespace {

constexpr char kReason[] = "reason";
constexpr char kRetryAfter[] = "retry_after_ns";
constexpr char kMetadata[] = "metadata.";

bool ReadLine(absl::string_view key, const std::string& value, StatusDetail* detail) {
  if (key == kReason) {
    detail->reason = value;
    return true;
  }
  if (key == kRetryAfter) {
    int64_t nanoseconds = 0;
    if (!absl::SimpleAtoi(value, &nanoseconds)) return false;
    detail->retry_after = Duration(nanoseconds);
    return true;
  }
  if (!absl::ConsumePrefix(&key, kMetadata)) return false;
  detail->metadata[std::string(key)] = value;
  return true;
}

}  // namespace

absl::Status WithDetail(absl::Status status, const StatusDetail& detail) {
  if (status.ok()) return status;
  std::string text;
  if (!detail.reason.empty()) absl::StrAppend(&text, kReason, "=", absl::CEscape(detail.reason), "\n");
  if (detail.retry_after.has_value())
    absl::StrAppend(&text, kRetryAfter, "=", detail.retry_after->count(), "\n");
  for (const auto& [key, value] : detail.metadata) {
    absl::StrAppend(&text, kMetadata, absl::CEscape(key), "=", absl::CEscape(value), "\n");
  }
  status.SetPayload(kStatusDetailUrl, absl::Cord(text));
  return status;
}

std::optional<StatusDetail> DetailOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kStatusDetailUrl);
  if (!payload.has_value()) return std::nullopt;
  StatusDetail detail;
  const std::string text(*payload);
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    std::string key, value;
    if (!absl::CUnescape(parts.first, &key) || !absl::CUnescape(parts.second, &value)) return std::nullopt;
    if (!ReadLine(key, value, &detail)) return std::nullopt;
  }
  return detail;
}

}  // namespace atl

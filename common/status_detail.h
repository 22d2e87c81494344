#ifndef ATOLL_COMMON_STATUS_DETAIL_H_
#define ATOLL_COMMON_STATUS_DETAIL_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/clock.h"

namespace atl {

/// Machine-readable details of a status. They are a payload of absl::Status in every layer; on the wire they
/// become google.rpc.ErrorInfo (domain "atoll") and google.rpc.RetryInfo.
struct StatusDetail {
  std::string reason;  // as in docs/reference/wire_format.md, "Errors": STALE_BASE; may be empty
  std::map<std::string, std::string> metadata;  // head_version=12
  std::optional<Duration> retry_after;
  friend bool operator==(const StatusDetail&, const StatusDetail&) = default;
};

/// Key of the payload: a text of lines "reason=", "retry_after_ns=", "metadata.KEY=", values C-escaped.
inline constexpr char kStatusDetailUrl[] = "atoll.refusal";

/// Returns the status with this detail, which replaces an existing one. Returns OK unchanged.
absl::Status WithDetail(absl::Status status, const StatusDetail& detail);

/// nullopt if the status has no detail or an unreadable one.
std::optional<StatusDetail> DetailOf(const absl::Status& status);

}  // namespace atl

#endif  // ATOLL_COMMON_STATUS_DETAIL_H_

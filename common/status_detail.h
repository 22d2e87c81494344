#ifndef ATOLL_COMMON_STATUS_DETAIL_H_
#define ATOLL_COMMON_STATUS_DETAIL_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/clock.h"

namespace atl {

/// What a status carries beside code and sentence, for programs to act on. It travels as a payload of
/// absl::Status through every layer; on the wire it becomes google.rpc.ErrorInfo (domain "atoll") and
/// google.rpc.RetryInfo.
struct StatusDetail {
  std::string reason;  // as in docs/reference/wire_format.md, "Errors": STALE_BASE; may be empty
  std::map<std::string, std::string> metadata;  // head_version=12
  std::optional<Duration> retry_after;
  friend bool operator==(const StatusDetail&, const StatusDetail&) = default;
};

/// Key of the payload: a text of lines "reason=", "retry_after_ns=", "metadata.KEY=", values C-escaped.
inline constexpr char kStatusDetailUrl[] = "atoll.refusal";

/// The status with this detail in place of any it had. OK comes back as it is.
absl::Status WithDetail(absl::Status status, const StatusDetail& detail);

/// nullopt when the status carries none, or one that cannot be read.
std::optional<StatusDetail> DetailOf(const absl::Status& status);

}  // namespace atl

#endif  // ATOLL_COMMON_STATUS_DETAIL_H_

#ifndef ATOLL_SERVER_REJECTION_H_
#define ATOLL_SERVER_REJECTION_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/ids.h"
#include "common/rejection_reason.h"

// Why a call was refused (common/rejection_reason.h), in a form that a program can act on: it travels as a
// detail of the absl::Status (common/status_detail.h), so that it passes through every layer that knows only
// that.

namespace atl {

/// Metadata of kStaleBase: the version that the worker should adopt, decimal.
inline constexpr char kHeadVersionKey[] = "head_version";

/// The status code that docs/reference/wire_format.md gives this reason.
absl::StatusCode RejectionCode(RejectionReason reason);

struct Rejection {
  RejectionReason reason = RejectionReason::kNone;
  std::map<std::string, std::string> metadata;  // keys and values without newlines
  std::optional<Duration> retry_after;
};

/// A status of the reason's code with the refusal attached.
absl::Status Reject(RejectionReason reason, std::string_view message);
absl::Status Reject(const Rejection& rejection, std::string_view message);

/// What both Push and the other calls answer once the coordinator is told to end.
absl::Status ShuttingDown();
/// The caller joined before the run was restored.
absl::Status WrongEpoch(const WorkerName& worker, Epoch of_caller, Epoch of_run);

/// The status as it is, with "try again after" attached. Keeps a refusal that is already there.
absl::Status WithRetryAfter(absl::Status status, Duration retry_after);

/// nullopt when the status carries none.
std::optional<Rejection> RejectionOf(const absl::Status& status);
/// Shorthand: kNone when the status carries none.
RejectionReason ReasonOf(const absl::Status& status);

}  // namespace atl

#endif  // ATOLL_SERVER_REJECTION_H_

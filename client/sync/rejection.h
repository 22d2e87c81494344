#ifndef ATOLL_CLIENT_SYNC_REJECTION_H_
#define ATOLL_CLIENT_SYNC_REJECTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/exit_codes.h"
#include "common/ids.h"
#include "common/rejection_reason.h"

namespace atl {

/// The status with this reason in its detail (common/status_detail.h). OK and kNone come back as they are.
absl::Status WithRejection(absl::Status status, RejectionReason reason);
RejectionReason RejectionReasonOf(const absl::Status& status);

/// Why a worker stops by itself: it does not trust its coordinator any more (client/sync/peer_audit.h).
/// PermissionDenied, with the exit code kUntrusted.
absl::Status Distrust(const std::string& why);

/// In one epoch the head of a fragment is below a version that this worker has pulled: the data directory is
/// an older copy of itself. WRONG_EPOCH: the worker joins again and drops what it has of the lost versions.
absl::Status WentBack(FragmentId fragment, Version from, Version to);

/// How long the coordinator asks to wait before the call is tried again (RetryInfo).
std::optional<Duration> RetryDelayOf(const absl::Status& status);

/// What a worker does about a failed call.
enum class Reaction : uint8_t {
  kRetry,   // the same call again, after a pause: network, deadline, budget, full disk, shutdown, not seeded
  kRejoin,  // Join again; with kWrongEpoch, local progress is dropped
  kAdoptHead,  // this contribution will never count: pull the head
  kResume,     // an upload was damaged on the way: send again from what GetPushStatus says
  kExit,       // no waiting helps; see ExitCodeOf
};

/// The table of docs/reference/wire_format.md. Without a reason: Unavailable, DeadlineExceeded,
/// ResourceExhausted, Aborted, Internal and Unknown (what servers, proxies and gRPC itself report around a
/// restart) and Unimplemented (another program has the address for now) are retried, DataLoss is resumed, the
/// rest is final. Cancelled is this side's own doing (connection.h).
Reaction ReactionTo(const absl::Status& status);

/// The status with a note that waiting will hardly help: what answers is no coordinator, or does not let this
/// program in, and only a person can change that. The note does not travel.
absl::Status MarkPermanent(absl::Status status);
bool LooksPermanent(const absl::Status& status);

/// Code and sentence, for people: without the details that programs read.
std::string Explain(const absl::Status& status);

/// kUntrusted for Distrust, kRejected for a refusal, kUsage or kInternal for a defect, else DefaultExitCode.
ExitCode ExitCodeOf(const absl::Status& status);

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_REJECTION_H_

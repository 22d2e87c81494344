#ifndef ATOLL_SERVER_RPC_DECODE_H_
#define ATOLL_SERVER_RPC_DECODE_H_

#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "atoll/v1/coordinator.pb.h"
#include "core/manifest.h"
#include "server/coordinator.h"

// What clients send, as the coordinator's calls. Refuses (InvalidArgument, naming the field) what no call
// could mean; whether a call is right for this run is the coordinator's to say.

namespace atl {

/// Bounds of docs/reference/wire_format.md.
inline constexpr uint32_t kMaxPullWaitMs = 60'000;
inline constexpr uint32_t kMaxStatusHistory = 1000;
inline constexpr size_t kMaxUnaryBytes = size_t{128} << 10;  // a request that is no stream
inline constexpr size_t kMaxTextBytes = 1024;                // what a worker says of itself, each
inline constexpr size_t kMinSecretBytes = 16;
inline constexpr size_t kMaxSecretBytes = 64;
/// Of LeaveRequest.reason, which an event stores.
inline constexpr size_t kMaxLeaveReasonBytes = 200;

/// Text that is only shown is not refused: the first `most` bytes of what is Printable() of it, up to the
/// end of a character of UTF-8.
std::string ShownText(const std::string& text, size_t most = kMaxTextBytes);

absl::StatusOr<Caller> DecodeCaller(const v1::WorkerRef& ref);
/// Checks the protocol's version first (PROTOCOL_MISMATCH).
absl::StatusOr<JoinCall> DecodeJoin(const v1::JoinRequest& request);
absl::StatusOr<HeartbeatCall> DecodeHeartbeat(const v1::HeartbeatRequest& request);
absl::StatusOr<PushCall> DecodePush(const v1::PushHeader& header);
absl::StatusOr<PushStatusCall> DecodePushStatus(const v1::GetPushStatusRequest& request);
absl::StatusOr<PullCall> DecodePull(const v1::PullRequest& request);
ConfirmationQuery DecodeConfirmationQuery(const v1::GetConfirmationsRequest& request);
/// None: the whole payload.
absl::StatusOr<std::optional<PullPart>> DecodePullRange(const v1::PullRequest& request);

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_DECODE_H_

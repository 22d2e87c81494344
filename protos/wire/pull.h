#ifndef ATOLL_PROTOS_WIRE_PULL_H_
#define ATOLL_PROTOS_WIRE_PULL_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "atoll/v1/coordinator.pb.h"
#include "core/protocol/member_ref.h"
#include "core/protocol/pull.h"

namespace atl {

/// Bound of docs/reference/wire_format.md.
inline constexpr uint32_t kMaxPullWaitMs = 60'000;

/// Waits at most kMaxPullWaitMs.
v1::PullRequest PullCallToProto(const MemberRef& member, const PullCall& call);
/// InvalidArgument for a wait above kMaxPullWaitMs. Neither the caller nor the range is read.
absl::StatusOr<PullCall> PullCallFromProto(const v1::PullRequest& request);

v1::PullRange PullPartToProto(const PullPart& part);
/// None: the whole payload. InvalidArgument for a part that is empty, or does not begin and end at multiples
/// of kWireChunkBytes.
absl::StatusOr<std::optional<PullPart>> PullPartFromProto(const v1::PullRequest& request);

v1::PullHeader PullReplyToProto(const PullReply& reply);
/// InvalidArgument when the coordinator sent something that makes no sense. Whether the parameters are those
/// that were asked for is the caller's to check.
absl::StatusOr<PullReply> PullReplyFromProto(const v1::PullHeader& header);

}  // namespace atl

#endif  // ATOLL_PROTOS_WIRE_PULL_H_

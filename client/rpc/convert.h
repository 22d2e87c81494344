#ifndef ATOLL_CLIENT_RPC_CONVERT_H_
#define ATOLL_CLIENT_RPC_CONVERT_H_

#include "absl/status/statusor.h"
#include "atoll/v1/coordinator.pb.h"
#include "client/sync/connection.h"

// Between the messages of atoll.v1 and what only a worker knows of them; protos/wire converts the rest.

namespace atl {

/// As JoinReplyFromProto, with the configuration parsed and checked.
absl::StatusOr<JoinedRun> JoinedRunFromProto(const v1::JoinReply& reply, const JoinCall& call);

/// With the range that an earlier attempt has left to pull.
v1::PullRequest PullRequestToProto(const MemberRef& member, const PullRequest& pull_request);
/// InvalidArgument when the header does not describe what `pull_request` expects; wire_bytes and times are
/// left zero.
absl::StatusOr<PulledVersion> PulledFromProto(const v1::PullHeader& header, const PullRequest& pull_request,
                                              bool in_parts = false);

}  // namespace atl

#endif  // ATOLL_CLIENT_RPC_CONVERT_H_

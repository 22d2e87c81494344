#ifndef ATOLL_WORKER_CLIENT_CONVERT_H_
#define ATOLL_WORKER_CLIENT_CONVERT_H_

#include "absl/status/statusor.h"
#include "atoll/v1/coordinator.pb.h"
#include "worker/sync/connection.h"

// Between the messages of atoll.v1 and the worker's plain values.

namespace atl {

v1::WorkerRef WorkerRefToProto(const MemberRef& member);
v1::JoinRequest JoinRequestToProto(const JoinParameters& parameters);
/// The answer to `parameters`. PROTOCOL_MISMATCH when the coordinator speaks another protocol;
/// InvalidArgument when it sent something that makes no sense.
absl::StatusOr<JoinInfo> JoinInfoFromProto(const v1::JoinReply& reply, const JoinParameters& parameters);

v1::HeartbeatRequest HeartbeatToProto(const MemberRef& member, const HeartbeatReport& heartbeat_report,
                                      const DeviceDescription& device);
HeartbeatReply HeartbeatReplyFromProto(const v1::HeartbeatReply& reply);

v1::PullRequest PullRequestToProto(const MemberRef& member, const PullRequest& pull_request);
/// InvalidArgument when the header does not describe what `pull_request` expects; wire_bytes and times are
/// left zero.
absl::StatusOr<PulledVersion> PulledFromProto(const v1::PullHeader& header, const PullRequest& pull_request,
                                              bool in_parts = false);

v1::PushHeader PushHeaderToProto(const MemberRef& member, const PushHeader& push_header,
                                 uint64_t payload_bytes);
v1::GetPushStatusRequest PushStatusRequestToProto(const MemberRef& member, const PushKey& key);
v1::GetConfirmationsRequest ConfirmationsRequestToProto(const MemberRef& member,
                                                        const ConfirmationsRequest& query);
ShownConfirmations ShownConfirmationsFromProto(const v1::ConfirmationPage& page);
PushStatus PushStatusFromProto(const v1::GetPushStatusReply& reply);

}  // namespace atl

#endif  // ATOLL_WORKER_CLIENT_CONVERT_H_

#ifndef ATOLL_WORKER_CLIENT_CONVERT_H_
#define ATOLL_WORKER_CLIENT_CONVERT_H_

#include "absl/status/statusor.h"
#include "atoll/v1/coordinator.pb.h"
#include "worker/sync/connection.h"

// Between the messages of atoll.v1 and the worker's plain values.

namespace atoll {

v1::WorkerRef WorkerRefToProto(const MemberRef& member);
v1::JoinRequest JoinRequestToProto(const JoinParameters& parameters);
/// The answer to `parameters`. PROTOCOL_MISMATCH when the coordinator speaks another protocol;
/// InvalidArgument when it sent something that makes no sense.
absl::StatusOr<JoinInfo> JoinInfoFromProto(const v1::JoinReply& reply, const JoinParameters& parameters);

v1::HeartbeatRequest HeartbeatToProto(const MemberRef& member, const HeartbeatNews& news,
                                      const DeviceFacts& device);
HeartbeatOrders HeartbeatOrdersFromProto(const v1::HeartbeatReply& reply);

v1::PullRequest PullRequestToProto(const MemberRef& member, const PullWish& wish);
/// InvalidArgument when the header does not describe what `wish` expects; wire_bytes and times are left zero.
absl::StatusOr<PulledVersion> PulledFromProto(const v1::PullHeader& header, const PullWish& wish,
                                              bool in_parts = false);

v1::PushHeader PushHeaderToProto(const MemberRef& member, const PushOffer& offer, uint64_t payload_bytes);
v1::GetPushStatusRequest PushStatusRequestToProto(const MemberRef& member, const PushKey& key);
v1::GetConfirmationsRequest ConfirmationsRequestToProto(const MemberRef& member,
                                                        const ConfirmationsWish& wish);
ShownConfirmations ShownConfirmationsFromProto(const v1::ConfirmationPage& page);
PushStatus PushStatusFromProto(const v1::GetPushStatusReply& reply);

}  // namespace atoll

#endif  // ATOLL_WORKER_CLIENT_CONVERT_H_

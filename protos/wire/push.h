#ifndef ATOLL_PROTOS_WIRE_PUSH_H_
#define ATOLL_PROTOS_WIRE_PUSH_H_

#include "absl/status/statusor.h"
#include "atoll/v1/coordinator.pb.h"
#include "core/protocol/member_ref.h"
#include "core/protocol/push.h"

namespace atl {

v1::PushRef PushKeyToProto(const PushKey& key);
PushKey PushKeyFromProto(const v1::PushRef& ref);

v1::PushHeader PushHeaderToProto(const MemberRef& member, const PushHeader& header);
/// WRONG_CODEC for a codec that is not known here. The caller is not read.
absl::StatusOr<PushHeader> PushHeaderFromProto(const v1::PushHeader& message);

v1::PushReply PushReplyToProto(const PushReply& reply);
PushReply PushReplyFromProto(const v1::PushReply& message);

v1::GetPushStatusRequest PushStatusCallToProto(const MemberRef& member, const PushKey& key);

v1::GetPushStatusReply PushStatusReplyToProto(const PushStatusReply& reply);
PushStatusReply PushStatusReplyFromProto(const v1::GetPushStatusReply& message);

}  // namespace atl

#endif  // ATOLL_PROTOS_WIRE_PUSH_H_

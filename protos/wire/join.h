#ifndef ATOLL_PROTOS_WIRE_JOIN_H_
#define ATOLL_PROTOS_WIRE_JOIN_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "atoll/v1/coordinator.pb.h"
#include "core/protocol/join.h"

namespace atl {

/// Bounds of docs/reference/wire_format.md.
inline constexpr size_t kMinSecretBytes = 16;
inline constexpr size_t kMaxSecretBytes = 64;

v1::Capabilities DeviceToProto(const DeviceDescription& device);
/// InvalidArgument naming the field when a text is too long; the rest is made printable.
absl::StatusOr<DeviceDescription> DeviceFromProto(const v1::Capabilities& capabilities);

v1::JoinRequest JoinCallToProto(const JoinCall& call);
/// Checks the protocol's version first (PROTOCOL_MISMATCH), then the bounds of every field (InvalidArgument
/// naming it). The address is left empty.
absl::StatusOr<JoinCall> JoinCallFromProto(const v1::JoinRequest& request);

/// Internal when the recorded configuration is not a RunConfig.
absl::Status JoinReplyToProto(const JoinReply& reply, v1::JoinReply* message);
/// The answer to `call`. PROTOCOL_MISMATCH when the coordinator speaks another protocol; InvalidArgument when
/// it sent something that makes no sense.
absl::StatusOr<JoinReply> JoinReplyFromProto(const v1::JoinReply& message, const JoinCall& call);

}  // namespace atl

#endif  // ATOLL_PROTOS_WIRE_JOIN_H_

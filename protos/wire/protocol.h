#ifndef ATOLL_PROTOS_WIRE_PROTOCOL_H_
#define ATOLL_PROTOS_WIRE_PROTOCOL_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "atoll/v1/types.pb.h"

namespace atl {

/// The protocol that this build speaks; docs/reference/wire_format.md, "Versions of the protocol".
inline constexpr uint32_t kProtocolMajor = 1;
inline constexpr uint32_t kProtocolMinor = 1;

v1::ProtocolVersion OurProtocolVersion();

/// FailedPrecondition with reason PROTOCOL_MISMATCH when the other side's major differs from ours: the
/// message names both versions and says which side to update. `peer` is how to call the other side: "worker",
/// "coordinator".
absl::Status CheckProtocolVersion(const v1::ProtocolVersion& theirs, std::string_view peer);

}  // namespace atl

#endif  // ATOLL_PROTOS_WIRE_PROTOCOL_H_

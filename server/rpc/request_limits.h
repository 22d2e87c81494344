#ifndef ATOLL_SERVER_RPC_REQUEST_LIMITS_H_
#define ATOLL_SERVER_RPC_REQUEST_LIMITS_H_

#include <cstdint>

namespace atl {

/// Bounds of docs/reference/wire_format.md on requests of either port; those of single fields are beside
/// their conversion in protos/wire.
inline constexpr uint32_t kMaxStatusHistory = 1000;

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_REQUEST_LIMITS_H_

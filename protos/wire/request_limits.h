#ifndef ATOLL_PROTOS_WIRE_REQUEST_LIMITS_H_
#define ATOLL_PROTOS_WIRE_REQUEST_LIMITS_H_

#include <cstddef>

namespace atl {

/// Bounds of docs/reference/wire_format.md that both sides know.
inline constexpr size_t kMaxUnaryBytes = size_t{128} << 10;     // a request that is no stream
inline constexpr size_t kMaxSeedHeaderBytes = size_t{2} << 20;  // as every message

}  // namespace atl

#endif  // ATOLL_PROTOS_WIRE_REQUEST_LIMITS_H_

#ifndef ATOLL_COMMON_RESIDENT_BYTES_H_
#define ATOLL_COMMON_RESIDENT_BYTES_H_

#include <cstdint>
#include <optional>

namespace atl {

/// Bytes of this process in physical memory; nullopt when the kernel does not say.
std::optional<uint64_t> ResidentBytes();

}  // namespace atl

#endif  // ATOLL_COMMON_RESIDENT_BYTES_H_

#ifndef ATOLL_COMMON_RESIDENT_BYTES_H_
#define ATOLL_COMMON_RESIDENT_BYTES_H_

#include <cstdint>
#include <optional>

namespace atl {

/// Bytes of this process in physical memory; nullopt if the kernel does not report them.
std::optional<uint64_t> ResidentBytes();

}  // namespace atl

#endif  // ATOLL_COMMON_RESIDENT_BYTES_H_

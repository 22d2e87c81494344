#ifndef ATOLL_COMMON_CRC32C_H_
#define ATOLL_COMMON_CRC32C_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace atl {

/// CRC-32C (Castagnoli), as in iSCSI (RFC 3720, B.4), leveldb and RocksDB: the CRC of "123456789" is
/// 0xE3069283. `seed` is the CRC of the preceding bytes, so Crc32c(b, Crc32c(a)) is the CRC of a followed by
/// b. Not masked.
uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t seed = 0);
uint32_t Crc32c(std::string_view bytes, uint32_t seed = 0);

}  // namespace atl

#endif  // ATOLL_COMMON_CRC32C_H_

#ifndef ATOLL_COMMON_CONTENT_HASH_H_
#define ATOLL_COMMON_CONTENT_HASH_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace atl {

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

/// Hash of a long byte string that many threads can compute together: the bytes are cut into blocks of
/// kHashBlockBytes (the last one shorter), each block is hashed with XXH3-128 (seed 0), and the hash is
/// XXH3-128 over the blocks' digests (16 bytes each: low then high, little-endian), then the number of bytes
/// (8, little-endian). An empty string has no blocks. For integrity, not for security. Must never change,
/// because it is stored on disk.
inline constexpr size_t kHashBlockBytes = size_t{1} << 20;

constexpr size_t HashBlocks(uint64_t bytes) {
  return static_cast<size_t>((bytes + kHashBlockBytes - 1) / kHashBlockBytes);
}

/// Digest of one block; at most kHashBlockBytes.
Hash128 HashBlock(std::span<const std::byte> block);

/// The hash of a string of `total_bytes` whose blocks' digests are these, in order; HashBlocks(total_bytes)
/// of them.
Hash128 CombineBlocks(std::span<const Hash128> digests, uint64_t total_bytes);

/// Computes the whole hash on the calling thread.
Hash128 HashBytes(std::span<const std::byte> bytes);

/// 32 lower-case hexadecimal digits, high first (as xxhsum prints a digest).
std::string ToHex(const Hash128& hash);

}  // namespace atl

#endif  // ATOLL_COMMON_CONTENT_HASH_H_

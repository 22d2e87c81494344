#include "common/content_hash.h"

#include <xxhash.h>

#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "common/block_hasher.h"

namespace atl {
namespace {

std::array<unsigned char, 8> LittleEndian(uint64_t value) {
  std::array<unsigned char, 8> bytes;
  for (unsigned char& byte : bytes) {
    byte = static_cast<unsigned char>(value);
    value >>= 8;
  }
  return bytes;
}

class Combiner {
 public:
  void Add(uint64_t value) {
    const auto bytes = LittleEndian(value);
    hasher_.Add(std::as_bytes(std::span(bytes)));
  }
  Hash128 Finish(uint64_t total_bytes) {
    Add(total_bytes);
    return hasher_.Digest();
  }

 private:
  BlockHasher hasher_;
};

}  // namespace

Hash128 HashBlock(std::span<const std::byte> block) {
  const XXH128_hash_t hash = XXH3_128bits(block.data(), block.size());
  return {hash.low64, hash.high64};
}

Hash128 CombineBlocks(std::span<const Hash128> digests, uint64_t total_bytes) {
  Combiner combiner;
  for (const Hash128& digest : digests) {
    combiner.Add(digest.low);
    combiner.Add(digest.high);
  }
  return combiner.Finish(total_bytes);
}

Hash128 HashBytes(std::span<const std::byte> bytes) {
  Combiner combiner;
  for (size_t begin = 0; begin < bytes.size(); begin += kHashBlockBytes) {
    const Hash128 digest = HashBlock(bytes.subspan(begin, std::min(kHashBlockBytes, bytes.size() - begin)));
    combiner.Add(digest.low);
    combiner.Add(digest.high);
  }
  return combiner.Finish(bytes.size());
}

std::string ToHex(const Hash128& hash) { return absl::StrFormat("%016x%016x", hash.high, hash.low); }

}  // namespace atl

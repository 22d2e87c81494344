#include "common/content_hash.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <memory>

#include "absl/strings/str_format.h"
#include "common/block_hasher.h"

namespace atl {
namespace {

Hash128 FromXxh(XXH128_hash_t hash) { return {hash.low64, hash.high64}; }

std::array<unsigned char, 8> LittleEndian(uint64_t value) {
  std::array<unsigned char, 8> bytes;
  for (unsigned char& byte : bytes) {
    byte = static_cast<unsigned char>(value);
    value >>= 8;
  }
  return bytes;
}

// The state wants 64-byte alignment, which XXH3_createState gives.
struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

class Combiner {
 public:
  Combiner() : state_(XXH3_createState()) { XXH3_128bits_reset(state_.get()); }
  void Add(uint64_t value) {
    const auto bytes = LittleEndian(value);
    XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
  }
  Hash128 Finish(uint64_t total_bytes) {
    Add(total_bytes);
    return FromXxh(XXH3_128bits_digest(state_.get()));
  }

 private:
  std::unique_ptr<XXH3_state_t, FreeState> state_;
};

}  // namespace

struct BlockHasher::State {
  std::unique_ptr<XXH3_state_t, FreeState> xxh3;
};

BlockHasher::BlockHasher() : state_(new State{std::unique_ptr<XXH3_state_t, FreeState>(XXH3_createState())}) {
  XXH3_128bits_reset(state_->xxh3.get());
}
BlockHasher::~BlockHasher() = default;
BlockHasher::BlockHasher(BlockHasher&&) noexcept = default;
BlockHasher& BlockHasher::operator=(BlockHasher&&) noexcept = default;

void BlockHasher::Add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->xxh3.get(), bytes.data(), bytes.size());
}

Hash128 BlockHasher::Digest() const { return FromXxh(XXH3_128bits_digest(state_->xxh3.get())); }

Hash128 HashBlock(std::span<const std::byte> block) {
  return FromXxh(XXH3_128bits(block.data(), block.size()));
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

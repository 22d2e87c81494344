#include "common/block_hasher.h"

#include <xxhash.h>

namespace atl {
namespace {

// The state wants 64-byte alignment, which XXH3_createState gives.
struct FreeState {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
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

Hash128 BlockHasher::Digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh3.get());
  return {hash.low64, hash.high64};
}

}  // namespace atl

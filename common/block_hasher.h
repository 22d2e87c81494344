#ifndef ATOLL_COMMON_BLOCK_HASHER_H_
#define ATOLL_COMMON_BLOCK_HASHER_H_

#include <cstddef>
#include <memory>
#include <span>

#include "common/content_hash.h"

namespace atl {

/// HashBlock of a block that arrives in pieces. Hashes each piece while it is in the cache. Movable; not
/// thread-safe.
class BlockHasher {
 public:
  BlockHasher();
  ~BlockHasher();
  BlockHasher(BlockHasher&&) noexcept;
  BlockHasher& operator=(BlockHasher&&) noexcept;

  void Add(std::span<const std::byte> bytes);
  /// HashBlock of all added bytes.
  Hash128 Digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace atl

#endif  // ATOLL_COMMON_BLOCK_HASHER_H_

#ifndef ATOLL_CLIENT_RPC_CHUNKS_H_
#define ATOLL_CLIENT_RPC_CHUNKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/block_compression.h"
#include "common/content_hash.h"
#include "common/crc32c.h"
#include "protos/wire/chunk_frame.h"

// Data as the streams of atoll.v1 carry it: chunks of at most 1 MiB, each with its offset and the crc32c of
// its bytes (docs/reference/wire_format.md, "Streams").

namespace atl {

inline constexpr size_t kChunkBytes = size_t{1} << 20;

/// Fills offset, data and crc32c of a message from the piece of `payload` at `offset`; the piece's size.
template <typename Chunk>
size_t FillChunk(std::span<const std::byte> payload, uint64_t offset, Chunk* chunk) {
  const auto piece = payload.subspan(offset, std::min<uint64_t>(kChunkBytes, payload.size() - offset));
  chunk->set_offset(offset);
  chunk->mutable_data()->assign(reinterpret_cast<const char*>(piece.data()), piece.size());
  chunk->set_crc32c(Crc32c(piece));
  return piece.size();
}

/// Puts the chunks of one payload into their place, and hashes it on the way. Not thread-safe.
class ChunkPlacer {
 public:
  /// `out` outlives this, and holds already the blocks that `digests` are of, which it has room for. It is
  /// what of the payload begins at byte `first`, a multiple of kHashBlockBytes.
  explicit ChunkPlacer(std::span<std::byte> out, std::vector<Hash128> digests = {}, uint64_t first = 0)
      : out_(out),
        first_(first),
        received_(std::min<uint64_t>(digests.size() * kHashBlockBytes, out.size())),
        digests_(std::move(digests)) {
    digests_.reserve(HashBlocks(out.size()));
  }

  /// Checks that the chunk continues where the last one ended, fits, and is what was sent; puts it there.
  /// DataLoss otherwise; what stands in `out` is then undefined.
  absl::Status Place(const ChunkFrame& chunk);

  bool complete() const { return received_ == out_.size(); }
  uint64_t received_bytes() const { return received_; }
  uint64_t expected_bytes() const { return out_.size(); }
  /// Of the blocks that are whole so far.
  const std::vector<Hash128>& digests() const { return digests_; }

 private:
  absl::Status Unpack(const ChunkFrame& chunk, std::span<std::byte> place);
  void HashCompleteBlocks();

  const std::span<std::byte> out_;
  const uint64_t first_;
  uint64_t received_;
  std::vector<Hash128> digests_;
  std::unique_ptr<BlockDecompressor> decompressor_;  // absent until it is needed
};

}  // namespace atl

#endif  // ATOLL_CLIENT_RPC_CHUNKS_H_

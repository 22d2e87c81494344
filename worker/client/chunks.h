#ifndef ATOLL_WORKER_CLIENT_CHUNKS_H_
#define ATOLL_WORKER_CLIENT_CHUNKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/crc32c.h"

// Data as the streams of atoll.v1 carry it: chunks of at most 1 MiB, each with its offset and the crc32c of
// its bytes (docs/wire_format.md, "Streams"). PushChunk, SeedChunk and PullChunk share these three fields.

namespace atoll {

inline constexpr size_t kChunkBytes = size_t{1} << 20;
/// What gRPC puts before each message: a flag and a length.
inline constexpr uint64_t kGrpcFrameBytes = 5;

/// Fills offset, data and crc32c from the piece of `payload` at `offset`; the piece's size.
template <typename Chunk>
size_t FillChunk(std::span<const std::byte> payload, uint64_t offset, Chunk* chunk) {
  const auto piece = payload.subspan(offset, std::min<uint64_t>(kChunkBytes, payload.size() - offset));
  chunk->set_offset(offset);
  chunk->mutable_data()->assign(reinterpret_cast<const char*>(piece.data()), piece.size());
  chunk->set_crc32c(Crc32c(piece));
  return piece.size();
}

/// Checks that `chunk` continues at `expected_offset`, fits into `out`, and is what was sent; copies it to
/// its place. DataLoss otherwise.
template <typename Chunk>
absl::Status PlaceChunk(const Chunk& chunk, uint64_t expected_offset, std::span<std::byte> out) {
  const std::string& data = chunk.data();
  if (chunk.offset() != expected_offset || data.empty() || data.size() > out.size() - expected_offset) {
    return absl::DataLossError(absl::StrFormat("a chunk of %d bytes at offset %d, expected offset %d of %d",
                                               data.size(), chunk.offset(), expected_offset, out.size()));
  }
  if (Crc32c(data) != chunk.crc32c()) {
    return absl::DataLossError(
        absl::StrFormat("the chunk at offset %d was damaged on the way (crc32c differs)", chunk.offset()));
  }
  const auto bytes = std::as_bytes(std::span(data));
  std::copy(bytes.begin(), bytes.end(), out.begin() + static_cast<ptrdiff_t>(expected_offset));
  return absl::OkStatus();
}

}  // namespace atoll

#endif  // ATOLL_WORKER_CLIENT_CHUNKS_H_

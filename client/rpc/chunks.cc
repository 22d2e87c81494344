#include "client/rpc/chunks.h"

#include <cstring>
#include <string>

#include "absl/strings/str_format.h"
#include "atoll/v1/coordinator.pb.h"
#include "common/status.h"

namespace atl {
namespace {

/// Copies the pieces one after the other; the crc32c of all of them. Each is checked and copied while it is
/// in the cache.
uint32_t CopyPieces(std::span<const ByteSpan> pieces, std::byte* to) {
  uint32_t crc32c = 0;
  for (const ByteSpan piece : pieces) {
    crc32c = Crc32c(piece, crc32c);
    std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  }
  return crc32c;
}

}  // namespace

absl::Status ChunkPlacer::Place(const ChunkFrame& chunk) {
  const bool packed = chunk.fields.compression != v1::COMPRESSION_NONE;
  const uint64_t bytes = packed ? chunk.fields.uncompressed_bytes : chunk.data_bytes;
  if (chunk.fields.offset != first_ + received_ || bytes == 0 || bytes > out_.size() - received_) {
    return absl::DataLossError(absl::StrFormat("a chunk of %d bytes at offset %d, expected offset %d of %d",
                                               bytes, chunk.fields.offset, first_ + received_,
                                               first_ + out_.size()));
  }
  const std::span<std::byte> place = out_.subspan(received_, bytes);
  uint32_t crc32c = 0;
  if (packed) {
    ATOLL_RETURN_IF_ERROR(Unpack(chunk, place));
    crc32c = Crc32c(place);
  } else {
    crc32c = CopyPieces(chunk.data, place.data());
  }
  if (crc32c != chunk.fields.crc32c) {
    return absl::DataLossError(absl::StrFormat(
        "the chunk at offset %d was damaged on the way (crc32c differs)", chunk.fields.offset));
  }
  received_ += bytes;
  HashCompleteBlocks();
  return absl::OkStatus();
}

absl::Status ChunkPlacer::Unpack(const ChunkFrame& chunk, std::span<std::byte> place) {
  if (chunk.fields.compression != v1::COMPRESSION_ZSTD) {
    return absl::DataLossError(
        absl::StrFormat("the chunk at offset %d is packed in a way that has the number %d",
                        chunk.fields.offset, chunk.fields.compression));
  }
  if (decompressor_ == nullptr) decompressor_ = std::make_unique<BlockDecompressor>();
  std::vector<std::byte> frame(chunk.data_bytes);
  CopyPieces(chunk.data, frame.data());
  const absl::Status unpacked = decompressor_->Decompress(frame, place);
  if (unpacked.ok()) return unpacked;
  return absl::DataLossError(
      absl::StrFormat("the chunk at offset %d: %s", chunk.fields.offset, unpacked.message()));
}

void ChunkPlacer::HashCompleteBlocks() {
  while (digests_.size() < HashBlocks(out_.size())) {
    const uint64_t begin = digests_.size() * kHashBlockBytes;
    const uint64_t end = std::min<uint64_t>(begin + kHashBlockBytes, out_.size());
    if (end > received_) return;
    digests_.push_back(HashBlock(out_.subspan(begin, end - begin)));
  }
}

}  // namespace atl

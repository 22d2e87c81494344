#include "server/rpc/receiver.h"

#include <string>

#include "absl/strings/str_format.h"
#include "common/crc32c.h"
#include "common/status.h"
#include "server/rejection.h"

namespace atl {

absl::Status CheckChunk(const WireChunk& chunk) {
  if (chunk.bytes == 0) {
    return absl::InvalidArgumentError(absl::StrFormat("the chunk at byte %d is empty", chunk.offset));
  }
  if (chunk.bytes > kWireChunkBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the chunk at byte %d has %d bytes; a chunk has at most %d", chunk.offset,
                        chunk.bytes, kWireChunkBytes));
  }
  uint32_t crc32c = 0;
  for (const std::span<const std::byte> piece : chunk.data) crc32c = Crc32c(piece, crc32c);
  if (crc32c != chunk.crc32c) {
    return Reject(
        RejectionReason::kBadChunk,
        absl::StrFormat("the chunk at byte %d arrived damaged: crc32c %08x, its sender says %08x; send "
                        "again from what GetPushStatus says",
                        chunk.offset, crc32c, chunk.crc32c));
  }
  return absl::OkStatus();
}

absl::StatusOr<WireChunk> ChunkUnpacker::Unpack(const WireChunk& chunk) {
  if (chunk.packing == ChunkPacking::kNone) return chunk;
  // Before anything is made of that size.
  if (chunk.bytes == 0 || chunk.bytes > kWireChunkBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the chunk at byte %d announces %d bytes when unpacked; 1 to %d are allowed",
                        chunk.offset, chunk.bytes, kWireChunkBytes));
  }
  packed_.clear();
  for (const std::span<const std::byte> piece : chunk.data) {
    packed_.insert(packed_.end(), piece.begin(), piece.end());
  }
  contents_.resize(chunk.bytes);
  if (decompressor_ == nullptr) decompressor_ = std::make_unique<BlockDecompressor>();
  const absl::Status unpacked = decompressor_->Decompress(packed_, contents_);
  if (!unpacked.ok()) {
    return absl::InvalidArgumentError(absl::StrFormat("the chunk at byte %d cannot be unpacked: %s",
                                                      chunk.offset, std::string(unpacked.message())));
  }
  piece_ = contents_;
  return WireChunk{
      .offset = chunk.offset, .data = std::span(&piece_, 1), .bytes = chunk.bytes, .crc32c = chunk.crc32c};
}

absl::Status PushReceiver::Begin(const MemberRef& caller, const PushHeader& header) {
  ATOLL_ASSIGN_OR_RETURN(session_, coordinator_->StartPush(caller, header));
  payload_bytes_ = header.payload_bytes;
  received_ = session_->received_bytes();
  return absl::OkStatus();
}

absl::Status PushReceiver::Chunk(const WireChunk& arrived) {
  ATOLL_ASSIGN_OR_RETURN(const WireChunk chunk, unpacker_.Unpack(arrived));
  ATOLL_RETURN_IF_ERROR(CheckChunk(chunk));
  if (chunk.offset != received_) {
    return Reject(RejectionReason::kBadChunk,
                  absl::StrFormat("a chunk for byte %d came where byte %d is next; send again from there",
                                  chunk.offset, received_));
  }
  if (chunk.bytes > payload_bytes_ - received_) {
    return Reject(
        RejectionReason::kWrongSize,
        absl::StrFormat("the chunk at byte %d has %d bytes, but the header announced a payload of %d",
                        chunk.offset, chunk.bytes, payload_bytes_));
  }
  return Append(chunk);
}

absl::Status PushReceiver::Append(const WireChunk& chunk) {
  for (const std::span<const std::byte> piece : chunk.data) {
    ATOLL_RETURN_IF_ERROR(session_->Append(received_, piece));
    received_ += piece.size();
  }
  return absl::OkStatus();
}

absl::StatusOr<PushResult> PushReceiver::End() {
  if (!complete() && received_ < payload_bytes_) {
    return Reject(
        RejectionReason::kBadChunk,
        absl::StrFormat("the stream ended at byte %d of %d; send the rest", received_, payload_bytes_));
  }
  return session_->Finish();
}

absl::Status SeedReceiver::Begin(const MemberRef& caller, const Manifest& manifest) {
  ATOLL_ASSIGN_OR_RETURN(session_, coordinator_->StartSeed(caller, manifest));
  return absl::OkStatus();
}

absl::Status SeedReceiver::Chunk(FragmentId fragment, const WireChunk& chunk) {
  ATOLL_RETURN_IF_ERROR(CheckChunk(chunk));
  uint64_t offset = chunk.offset;
  for (const std::span<const std::byte> piece : chunk.data) {
    ATOLL_RETURN_IF_ERROR(session_->Append(fragment, offset, piece));
    offset += piece.size();
  }
  return absl::OkStatus();
}

absl::StatusOr<SeedResult> SeedReceiver::End() { return session_->Finish(); }

}  // namespace atl

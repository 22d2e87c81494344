#ifndef ATOLL_SERVER_RPC_RECEIVER_H_
#define ATOLL_SERVER_RPC_RECEIVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/block_compression.h"
#include "core/manifest.h"
#include "server/coordinator.h"

// What a stream of chunks means, without gRPC and without protobuf: header, chunks, end. One thread at a
// time; every call may block on the disk.

namespace atl {

/// How the data of one chunk is packed (v1::Compression on the wire).
enum class ChunkPacking : uint8_t { kNone, kZstd };

/// One chunk as it stood in its message: its data in the pieces in which it arrived, borrowed.
struct WireChunk {
  uint64_t offset = 0;  // as crc32c and bytes, of what is packed
  std::span<const std::span<const std::byte>> data;
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
  ChunkPacking packing = ChunkPacking::kNone;
};

/// InvalidArgument: empty, or above kWireChunkBytes. DataLoss (BAD_CHUNK): the bytes are not those that were
/// checksummed. Only for chunks that are not packed.
absl::Status CheckChunk(const WireChunk& chunk);

/// Chunks as they were before they were packed. Memory: two chunks once the first packed one has come.
class ChunkUnpacker {
 public:
  /// `chunk` itself when it is not packed; else its contents, valid until the next call. InvalidArgument when
  /// it does not hold what it announces.
  absl::StatusOr<WireChunk> Unpack(const WireChunk& chunk);

 private:
  std::unique_ptr<BlockDecompressor> decompressor_;  // absent until it is needed
  std::vector<std::byte> packed_;
  std::vector<std::byte> contents_;
  std::span<const std::byte> piece_;
};

/// A contribution on its way in. Dropping it before End leaves what arrived, so that the push can be resumed.
class PushReceiver {
 public:
  /// `coordinator` outlives this.
  explicit PushReceiver(Coordinator* coordinator) : coordinator_(coordinator) {}

  absl::Status Begin(const MemberRef& caller, const PushHeader& header);
  /// The contribution was here already: nothing more needs to come, End answers.
  bool complete() const { return session_ != nullptr && session_->already_accepted(); }
  /// Offsets start at what an earlier, broken upload left, and ascend without gaps.
  absl::Status Chunk(const WireChunk& chunk);
  absl::StatusOr<PushResult> End();

 private:
  absl::Status Append(const WireChunk& chunk);

  Coordinator* const coordinator_;
  std::unique_ptr<PushSession> session_;
  ChunkUnpacker unpacker_;
  uint64_t payload_bytes_ = 0;
  uint64_t received_ = 0;
};

/// Version 0 on its way in. Dropping it before End leaves the run unseeded.
class SeedReceiver {
 public:
  /// `coordinator` outlives this.
  explicit SeedReceiver(Coordinator* coordinator) : coordinator_(coordinator) {}

  absl::Status Begin(const MemberRef& caller, const Manifest& manifest);
  absl::Status Chunk(FragmentId fragment, const WireChunk& chunk);
  absl::StatusOr<SeedResult> End();

 private:
  Coordinator* const coordinator_;
  std::unique_ptr<SeedSession> session_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_RECEIVER_H_

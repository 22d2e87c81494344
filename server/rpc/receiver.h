#ifndef ATOLL_SERVER_RPC_RECEIVER_H_
#define ATOLL_SERVER_RPC_RECEIVER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/manifest.h"
#include "server/coordinator.h"

// What a stream of chunks means, without gRPC and without protobuf: header, chunks, end. One thread at a
// time; every call may block on the disk.

namespace atoll {

/// One chunk as it stood in its message; `data` is borrowed.
struct WireChunk {
  uint64_t offset = 0;
  std::span<const std::byte> data;
  uint32_t crc32c = 0;
};

/// InvalidArgument: empty, or above kWireChunkBytes. DataLoss (BAD_CHUNK): the bytes are not those that were
/// checksummed.
absl::Status CheckChunk(const WireChunk& chunk);

/// A contribution on its way in. Dropping it before End leaves what arrived, so that the push can be resumed.
class PushReceiver {
 public:
  /// `coordinator` outlives this.
  explicit PushReceiver(Coordinator* coordinator) : coordinator_(coordinator) {}

  absl::Status Begin(const PushCall& call);
  /// The contribution was here already: nothing more needs to come, End answers.
  bool complete() const { return session_ != nullptr && session_->already_accepted(); }
  /// Offsets start at what an earlier, broken upload left, and ascend without gaps.
  absl::Status Chunk(const WireChunk& chunk);
  absl::StatusOr<PushResult> End();

 private:
  Coordinator* const coordinator_;
  std::unique_ptr<PushSession> session_;
  uint64_t payload_bytes_ = 0;
  uint64_t received_ = 0;
};

/// Version 0 on its way in. Dropping it before End leaves the run unseeded.
class SeedReceiver {
 public:
  /// `coordinator` outlives this.
  explicit SeedReceiver(Coordinator* coordinator) : coordinator_(coordinator) {}

  absl::Status Begin(const Caller& caller, const Manifest& manifest);
  absl::Status Chunk(FragmentId fragment, const WireChunk& chunk);
  absl::StatusOr<SeedResult> End();

 private:
  Coordinator* const coordinator_;
  std::unique_ptr<SeedSession> session_;
};

}  // namespace atoll

#endif  // ATOLL_SERVER_RPC_RECEIVER_H_

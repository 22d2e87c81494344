#ifndef ATOLL_CLIENT_RPC_PULL_READING_H_
#define ATOLL_CLIENT_RPC_PULL_READING_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "atoll/v1/coordinator.pb.h"
#include "client/rpc/chunks.h"
#include "client/rpc/stall_guard.h"
#include "common/clock.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/sync_stream.h"

// What comes down a pull's stream.

namespace atl {

using PullReader = grpc::ClientReader<grpc::ByteBuffer>;

/// The header in the first message. `ended`: there was none, and the stream's own status says why.
absl::StatusOr<v1::PullHeader> ReadPullHeader(PullReader& reader, uint64_t* wire_bytes, bool* ended);

/// Reads chunks into place until that is complete, and nothing follows. Unavailable when the stream ends
/// before, DataLoss when something in it is wrong.
absl::Status ReadPullChunks(PullReader& reader, ChunkPlacer& placer, StallGuard& guard, Duration stall,
                            uint64_t* wire_bytes);

}  // namespace atl

#endif  // ATOLL_CLIENT_RPC_PULL_READING_H_

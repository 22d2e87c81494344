#include "client/rpc/pull_reading.h"

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "protos/wire/chunk_message.h"

namespace atl {
namespace {

absl::Status PlaceMessage(const grpc::ByteBuffer& message, ChunkPlacer& placer) {
  const MessagePieces arrived(message);
  ATOLL_ASSIGN_OR_RETURN(const ChunkFrame frame, ParseChunkFrame(arrived.pieces()));
  return placer.Place(frame);
}

}  // namespace

absl::StatusOr<v1::PullHeader> ReadPullHeader(PullReader& reader, uint64_t* wire_bytes, bool* ended) {
  grpc::ByteBuffer message;
  v1::PullChunk first;
  *ended = !reader.Read(&message);
  if (*ended) return absl::InternalError("the coordinator ended a pull without a header");
  if (!MessageFromBytes(message, &first).ok() || !first.has_header()) {
    return absl::InternalError("the coordinator began a pull with something else than a header");
  }
  *wire_bytes += message.Length() + kMessagePrefixBytes;
  return first.header();
}

absl::Status ReadPullChunks(PullReader& reader, ChunkPlacer& placer, StallGuard& guard, Duration stall,
                            uint64_t* wire_bytes) {
  grpc::ByteBuffer message;
  while (!placer.complete()) {
    if (!reader.Read(&message)) {
      return absl::UnavailableError(absl::StrFormat("the pull broke after %d of %d bytes",
                                                    placer.received_bytes(), placer.expected_bytes()));
    }
    guard.Progress(stall);
    *wire_bytes += message.Length() + kMessagePrefixBytes;
    ATOLL_RETURN_IF_ERROR(PlaceMessage(message, placer));
  }
  if (reader.Read(&message)) return absl::DataLossError("the pull goes on after its last byte");
  return absl::OkStatus();
}

}  // namespace atl

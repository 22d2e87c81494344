#include "server/rpc/receiver.h"

#include "absl/strings/str_format.h"
#include "common/crc32c.h"
#include "common/status.h"
#include "server/refusal.h"

namespace atoll {

absl::Status CheckChunk(const WireChunk& chunk) {
  if (chunk.data.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat("the chunk at byte %d is empty", chunk.offset));
  }
  if (chunk.data.size() > kWireChunkBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the chunk at byte %d has %d bytes; a chunk has at most %d", chunk.offset,
                        chunk.data.size(), kWireChunkBytes));
  }
  const uint32_t crc32c = Crc32c(chunk.data);
  if (crc32c != chunk.crc32c) {
    return Refuse(
        RefusalReason::kBadChunk,
        absl::StrFormat("the chunk at byte %d arrived damaged: crc32c %08x, its sender says %08x; send "
                        "again from what GetPushStatus says",
                        chunk.offset, crc32c, chunk.crc32c));
  }
  return absl::OkStatus();
}

absl::Status PushReceiver::Begin(const PushCall& call) {
  ATOLL_ASSIGN_OR_RETURN(session_, coordinator_->StartPush(call));
  payload_bytes_ = call.payload_bytes;
  received_ = session_->received_bytes();
  return absl::OkStatus();
}

absl::Status PushReceiver::Chunk(const WireChunk& chunk) {
  ATOLL_RETURN_IF_ERROR(CheckChunk(chunk));
  if (chunk.offset != received_) {
    return Refuse(RefusalReason::kBadChunk,
                  absl::StrFormat("a chunk for byte %d came where byte %d is next; send again from there",
                                  chunk.offset, received_));
  }
  if (chunk.data.size() > payload_bytes_ - received_) {
    return Refuse(
        RefusalReason::kWrongSize,
        absl::StrFormat("the chunk at byte %d has %d bytes, but the header announced a payload of %d",
                        chunk.offset, chunk.data.size(), payload_bytes_));
  }
  ATOLL_RETURN_IF_ERROR(session_->Append(chunk.offset, chunk.data));
  received_ += chunk.data.size();
  return absl::OkStatus();
}

absl::StatusOr<PushResult> PushReceiver::End() {
  if (!complete() && received_ < payload_bytes_) {
    return Refuse(
        RefusalReason::kBadChunk,
        absl::StrFormat("the stream ended at byte %d of %d; send the rest", received_, payload_bytes_));
  }
  return session_->Finish();
}

absl::Status SeedReceiver::Begin(const Caller& caller, const Manifest& manifest) {
  ATOLL_ASSIGN_OR_RETURN(session_, coordinator_->StartSeed(caller, manifest));
  return absl::OkStatus();
}

absl::Status SeedReceiver::Chunk(FragmentId fragment, const WireChunk& chunk) {
  ATOLL_RETURN_IF_ERROR(CheckChunk(chunk));
  return session_->Append(fragment, chunk.offset, chunk.data);
}

absl::StatusOr<SeedResult> SeedReceiver::End() { return session_->Finish(); }

}  // namespace atoll

#include <memory>
#include <vector>

#include "common/status.h"
#include "protos/wire/manifest.h"
#include "worker/client/chunks.h"
#include "worker/client/convert.h"
#include "worker/client/grpc_connection.h"
#include "worker/client/registration.h"
#include "worker/client/stall_guard.h"

namespace atoll {
namespace {

/// Writes `payload` from `from` on. False when the stream ended early: the coordinator has answered already,
/// or the connection broke; Finish tells which.
template <typename Chunk>
bool WriteChunks(grpc::ClientWriter<Chunk>& writer, std::span<const std::byte> payload, uint64_t from,
                 Chunk* chunk, StallGuard& guard, Duration stall, uint64_t* wire_bytes) {
  for (uint64_t offset = from; offset < payload.size();) {
    offset += FillChunk(payload, offset, chunk);
    *wire_bytes += chunk->ByteSizeLong() + kGrpcFrameBytes;
    if (!writer.Write(*chunk)) return false;
    guard.Progress(stall);
  }
  return true;
}

}  // namespace

absl::StatusOr<PushReceipt> GrpcConnection::Push(const MemberRef& member, const PushOffer& offer,
                                                 std::span<const std::byte> payload, uint64_t from) {
  AwaitConnection();
  grpc::ClientContext context;
  const Registration registration(this, &GrpcConnection::pushes_, &context);
  StallGuard guard(&context, options_.stall);
  v1::PushReply reply;
  const std::unique_ptr<grpc::ClientWriter<v1::PushChunk>> writer = stub_->Push(&context, &reply);
  v1::PushChunk head;
  *head.mutable_header() = PushHeaderToProto(member, offer, payload.size());
  uint64_t wire_bytes = head.ByteSizeLong() + kGrpcFrameBytes;
  v1::PushChunk chunk;
  if (writer->Write(head)) WriteChunks(*writer, payload, from, &chunk, guard, options_.stall, &wire_bytes);
  writer->WritesDone();
  guard.Progress(options_.push_answer);
  const grpc::Status status = writer->Finish();
  if (!status.ok() && registration.cancelled()) {
    return absl::CancelledError("the push was cancelled: the worker has no time left");
  }
  if (!status.ok()) return Translate(status, guard.stalled());
  return PushReceipt{.duplicate = reply.duplicate(),
                     .head = Version(reply.head_version()),
                     .arrived = reply.arrived(),
                     .expected = reply.expected(),
                     .wire_bytes = wire_bytes};
}

absl::Status GrpcConnection::SeedParameters(const MemberRef& member, const Manifest& manifest,
                                            std::span<const SeedFragment> fragments) {
  AwaitConnection();
  grpc::ClientContext context;
  StallGuard guard(&context, options_.stall);
  v1::SeedReply reply;
  const std::unique_ptr<grpc::ClientWriter<v1::SeedChunk>> writer = stub_->SeedParameters(&context, &reply);
  v1::SeedChunk head;
  *head.mutable_header()->mutable_worker() = WorkerRefToProto(member);
  *head.mutable_header()->mutable_manifest() = ManifestToProto(manifest);
  bool open = writer->Write(head);
  v1::SeedChunk chunk;
  uint64_t wire_bytes = 0;
  for (const SeedFragment& fragment : fragments) {
    if (!open) break;
    chunk.set_fragment(fragment.id.value());
    open =
        WriteChunks(*writer, std::as_bytes(fragment.values), 0, &chunk, guard, options_.stall, &wire_bytes);
  }
  writer->WritesDone();
  guard.Progress(options_.seed_answer);
  return Translate(writer->Finish(), guard.stalled());
}

}  // namespace atoll

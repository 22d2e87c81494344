#include "server/rpc/push_stream.h"

#include <memory>
#include <string>

#include "absl/strings/str_format.h"
#include "atoll/v1/coordinator.pb.h"
#include "common/status.h"
#include "protos/wire/chunk_message.h"
#include "protos/wire/push.h"
#include "protos/wire/run_state.h"
#include "server/rpc/admission.h"
#include "server/rpc/upload_reactor.h"

namespace atl {
namespace {

absl::StatusOr<WireChunk> ChunkOf(const ChunkFrame& frame) {
  WireChunk chunk{.offset = frame.fields.offset,
                  .data = frame.data,
                  .bytes = frame.data_bytes,
                  .crc32c = frame.fields.crc32c};
  switch (frame.fields.compression) {
    case v1::COMPRESSION_NONE:
      return chunk;
    case v1::COMPRESSION_ZSTD:
      chunk.packing = ChunkPacking::kZstd;
      chunk.bytes = frame.fields.uncompressed_bytes;
      return chunk;
    default:
      return absl::InvalidArgumentError(
          absl::StrFormat("compression: none of ours has the number %d", frame.fields.compression));
  }
}

}  // namespace

absl::Status PushStream::OnMessage(const grpc::ByteBuffer& message) {
  const MessagePieces arrived(message);
  ATOLL_ASSIGN_OR_RETURN(const ChunkFrame frame, ParseChunkFrame(arrived.pieces()));
  if (!begun_) return OnHeader(frame);
  if (frame.has_header) {
    return absl::InvalidArgumentError("header: a push has one, in its first message only");
  }
  ATOLL_ASSIGN_OR_RETURN(const WireChunk chunk, ChunkOf(frame));
  return receiver_.Chunk(chunk);
}

absl::Status PushStream::OnHeader(const ChunkFrame& frame) {
  if (!frame.has_header || frame.data_bytes > 0) {
    return absl::InvalidArgumentError(
        "header: the first message of a push carries the header, and only that");
  }
  v1::PushHeader message;
  if (!message.ParseFromString(frame.header)) {
    return absl::InvalidArgumentError("header: is no atoll.v1.PushHeader");
  }
  ATOLL_ASSIGN_OR_RETURN(const MemberRef caller, MemberRefFromProto(message.worker()));
  ATOLL_ASSIGN_OR_RETURN(const PushHeader header, PushHeaderFromProto(message));
  ATOLL_RETURN_IF_ERROR(CheckMember(who_, caller.worker, MemberAct::kContribute));
  fragment_ = header.key.fragment;
  begun_ = true;
  return receiver_.Begin(caller, header);
}

absl::Status PushStream::OnEnd(grpc::ByteBuffer* reply) {
  if (!begun_) return absl::InvalidArgumentError("header: the push ended before it");
  ATOLL_ASSIGN_OR_RETURN(const PushResult result, receiver_.End());
  heads_->Saw(fragment_, result.head);
  *reply = MessageToBytes(PushReplyToProto(result));
  return absl::OkStatus();
}

grpc::ServerReadReactor<grpc::ByteBuffer>* StartPushStream(const CallContext& call,
                                                           grpc::CallbackServerContext* context,
                                                           grpc::ByteBuffer* reply) {
  const auto who = IdentifyCaller(call, *context);
  return UploadReactor<grpc::ByteBuffer, grpc::ByteBuffer, PushStream>::Start(
      call, context, who.status(), reply,
      std::make_unique<PushStream>(call.coordinator, call.heads, who.value_or(Identity())));
}

}  // namespace atl

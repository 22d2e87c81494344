#include "server/rpc/push_stream.h"

#include <memory>
#include <string>

#include "common/status.h"
#include "server/rpc/decode.h"
#include "server/rpc/encode.h"
#include "server/rpc/upload_reactor.h"

namespace atoll {
namespace {

WireChunk ChunkOf(const v1::PushChunk& message) {
  return {.offset = message.offset(),
          .data = std::as_bytes(std::span(message.data())),
          .crc32c = message.crc32c()};
}

}  // namespace

absl::Status PushStream::OnMessage(const v1::PushChunk& message) {
  if (!begun_) return OnHeader(message);
  if (message.has_header()) {
    return absl::InvalidArgumentError("header: a push has one, in its first message only");
  }
  return receiver_.Chunk(ChunkOf(message));
}

absl::Status PushStream::OnHeader(const v1::PushChunk& message) {
  if (!message.has_header() || !message.data().empty()) {
    return absl::InvalidArgumentError(
        "header: the first message of a push carries the header, and only that");
  }
  ATOLL_ASSIGN_OR_RETURN(const PushCall call, DecodePush(message.header()));
  fragment_ = call.fragment;
  begun_ = true;
  return receiver_.Begin(call);
}

absl::Status PushStream::OnEnd(v1::PushReply* reply) {
  if (!begun_) return absl::InvalidArgumentError("header: the push ended before it");
  ATOLL_ASSIGN_OR_RETURN(const PushResult result, receiver_.End());
  heads_->Saw(fragment_, result.head);
  EncodePush(result, reply);
  return absl::OkStatus();
}

grpc::ServerReadReactor<v1::PushChunk>* StartPushStream(const CallContext& call,
                                                        grpc::CallbackServerContext* context,
                                                        v1::PushReply* reply) {
  return UploadReactor<v1::PushChunk, v1::PushReply, PushStream>::Start(
      call, context, reply, std::make_unique<PushStream>(call.coordinator, call.heads));
}

}  // namespace atoll

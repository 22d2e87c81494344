#include "server/rpc/seed_stream.h"

#include <memory>

#include "common/status.h"
#include "protos/wire/manifest.h"
#include "protos/wire/run_state.h"
#include "server/rpc/admission.h"
#include "server/rpc/encode.h"
#include "server/rpc/upload_reactor.h"

namespace atl {

absl::Status SeedStream::OnMessage(const v1::SeedChunk& message) {
  if (!begun_) return OnHeader(message);
  if (message.has_header()) {
    return absl::InvalidArgumentError("header: a seed has one, in its first message only");
  }
  const auto data = std::as_bytes(std::span(message.data()));
  return receiver_.Chunk(FragmentId(message.fragment()), {.offset = message.offset(),
                                                          .data = std::span(&data, 1),
                                                          .bytes = data.size(),
                                                          .crc32c = message.crc32c()});
}

absl::Status SeedStream::OnHeader(const v1::SeedChunk& message) {
  if (!message.has_header() || !message.data().empty()) {
    return absl::InvalidArgumentError(
        "header: the first message of a seed carries the header, and only that");
  }
  ATOLL_ASSIGN_OR_RETURN(const MemberRef caller, MemberRefFromProto(message.header().worker()));
  ATOLL_RETURN_IF_ERROR(CheckMember(who_, caller.worker, MemberAct::kContribute));
  ATOLL_ASSIGN_OR_RETURN(const Manifest manifest, ManifestFromProto(message.header().manifest()));
  begun_ = true;
  return receiver_.Begin(caller, manifest);
}

absl::Status SeedStream::OnEnd(v1::SeedReply* reply) {
  if (!begun_) return absl::InvalidArgumentError("header: the seed ended before it");
  ATOLL_ASSIGN_OR_RETURN(const SeedResult result, receiver_.End());
  EncodeSeed(result, reply);
  return absl::OkStatus();
}

grpc::ServerReadReactor<v1::SeedChunk>* StartSeedStream(const CallContext& call,
                                                        grpc::CallbackServerContext* context,
                                                        v1::SeedReply* reply) {
  const auto who = IdentifyCaller(call, *context);
  return UploadReactor<v1::SeedChunk, v1::SeedReply, SeedStream>::Start(
      call, context, who.status(), reply,
      std::make_unique<SeedStream>(call.coordinator, who.value_or(Identity())));
}

}  // namespace atl

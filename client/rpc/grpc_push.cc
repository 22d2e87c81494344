#include "client/rpc/grpc_push.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "client/rpc/chunks.h"
#include "client/rpc/stall_guard.h"
#include "common/block_compression.h"
#include "common/status.h"
#include "protos/wire/chunk_message.h"
#include "protos/wire/manifest.h"
#include "protos/wire/push.h"
#include "protos/wire/request_limits.h"
#include "protos/wire/run_state.h"
#include "protos/wire/trace.h"

namespace atl {
namespace {

// While memory is lent and nobody calls, somebody has to let gRPC go on with its sockets.
constexpr auto kReturnPoll = std::chrono::milliseconds(20);

/// A payload as the messages of a Push.
class PushMessages {
 public:
  /// Chunks refer to the payload, or have a copy of it while `copies` is set.
  PushMessages(const PushHeader& push_header, std::span<const std::byte> payload,
               const std::shared_ptr<const void>& owner, const std::atomic<bool>* copies)
      : payload_(payload), owner_(owner), copies_(copies) {
    if (push_header.zstd) compressor_ = std::make_unique<BlockCompressor>();
  }

  /// The chunk at `offset`, which is moved past it.
  grpc::ByteBuffer Next(uint64_t* offset) {
    const auto piece = payload_.subspan(*offset, std::min<uint64_t>(kChunkBytes, payload_.size() - *offset));
    ChunkFields fields{.offset = *offset, .crc32c = Crc32c(piece)};
    *offset += piece.size();
    return compressor_ != nullptr ? Packed(fields, piece) : Plain(fields, piece);
  }

 private:
  grpc::ByteBuffer Plain(const ChunkFields& fields, std::span<const std::byte> piece) const {
    if (!*copies_) return ChunkMessage(fields, piece, owner_);
    const auto copy = std::make_shared<const std::vector<std::byte>>(piece.begin(), piece.end());
    return ChunkMessage(fields, *copy, copy);
  }

  grpc::ByteBuffer Packed(ChunkFields fields, std::span<const std::byte> piece) {
    auto packed = std::make_shared<std::vector<std::byte>>(LargestPacked(piece.size()));
    const size_t size = compressor_->Compress(piece, *packed);
    if (size == 0) return Plain(fields, piece);
    fields.compression = v1::COMPRESSION_ZSTD;
    fields.uncompressed_bytes = static_cast<uint32_t>(piece.size());
    return ChunkMessage(fields, std::span(*packed).first(size), packed);
  }

  const std::span<const std::byte> payload_;
  const std::shared_ptr<const void> owner_;
  const std::atomic<bool>* const copies_;
  std::unique_ptr<BlockCompressor> compressor_;
};

/// gRPC would only say that a message is too large.
absl::Status CheckSeedHeader(const v1::SeedChunk& header) {
  if (header.ByteSizeLong() <= kMaxSeedHeaderBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "the model has %d tensors, whose names and shapes take %d bytes; the header of a seed has at most %d. "
      "Shorten the names of the tensors, or join small tensors to fewer large ones",
      header.header().manifest().tensors_size(), header.ByteSizeLong(), kMaxSeedHeaderBytes));
}

constexpr char kPushMethod[] = "/atoll.v1.Coordinator/Push";

}  // namespace

GrpcPush::GrpcPush(const CallSetup* setup, const std::shared_ptr<grpc::Channel>& channel)
    : setup_(setup),
      channel_(channel),
      stub_(v1::Coordinator::NewStub(channel)),
      push_method_(kPushMethod, grpc::internal::RpcMethod::CLIENT_STREAMING, channel) {}

absl::StatusOr<PushReceipt> GrpcPush::Push(const MemberRef& member, const PushHeader& push_header,
                                           std::span<const std::byte> payload, uint64_t from) {
  BorrowedBuffer borrowed;
  absl::StatusOr<PushReceipt> receipt = Send(member, push_header, payload, from, borrowed.share());
  borrowed.Close();
  AwaitReturn(borrowed);
  return receipt;
}

void GrpcPush::AwaitReturn(const BorrowedBuffer& borrowed) const {
  while (!borrowed.returned()) {
    // Only what is on its way into the socket is still held: of a stream that was given up, on a connection
    // that takes nothing. It is closed when nothing was acknowledged for ChannelOptions::keepalive_timeout.
    channel_->WaitForStateChange(channel_->GetState(false), std::chrono::system_clock::now() + kReturnPoll);
  }
}

absl::StatusOr<PushReceipt> GrpcPush::Send(const MemberRef& member, const PushHeader& push_header,
                                           std::span<const std::byte> payload, uint64_t from,
                                           const std::shared_ptr<const void>& owner) {
  setup_->AwaitConnection(*channel_, pushes_);
  grpc::ClientContext context;
  setup_->Introduce(context);
  const CallSet::Registration registration(&pushes_, &context);
  StallGuard guard(&context, setup_->options().stall);
  grpc::ByteBuffer answer;
  const std::unique_ptr<ByteWriter> writer(grpc::internal::ClientWriterFactory<grpc::ByteBuffer>::Create(
      channel_.get(), push_method_, &context, &answer));
  v1::PushChunk head;
  *head.mutable_header() = PushHeaderToProto(member, push_header);
  grpc::ByteBuffer message = MessageToBytes(head);
  PushMessages messages(push_header, payload, owner, &copies_);
  uint64_t wire_bytes = 0;
  for (uint64_t offset = from;; message = messages.Next(&offset)) {
    wire_bytes += message.Length() + kMessagePrefixBytes;
    // False when the stream ended early: the coordinator has answered already, or the connection broke.
    if (!writer->Write(message)) break;
    guard.Progress(setup_->options().stall);
    if (offset >= payload.size()) break;
  }
  message.Clear();
  writer->WritesDone();
  guard.Progress(setup_->options().push_answer);
  const grpc::Status status = writer->Finish();
  if (!status.ok() && registration.cancelled()) {
    return absl::CancelledError("the push was cancelled: the worker has no time left");
  }
  if (!status.ok()) return setup_->Translate(status, guard.stalled());
  v1::PushReply reply;
  if (!MessageFromBytes(answer, &reply).ok()) {
    return absl::InternalError("the answer to a push cannot be read");
  }
  return PushReceipt{PushReplyFromProto(reply), wire_bytes};
}

absl::Status GrpcPush::Seed(const MemberRef& member, const Manifest& manifest,
                            std::span<const SeedFragment> fragments) {
  v1::SeedChunk head;
  *head.mutable_header()->mutable_worker() = MemberRefToProto(member);
  *head.mutable_header()->mutable_manifest() = ManifestToProto(manifest);
  ATOLL_RETURN_IF_ERROR(CheckSeedHeader(head));
  setup_->AwaitConnection(*channel_, pushes_);
  grpc::ClientContext context;
  setup_->Introduce(context);
  const CallSet::Registration registration(&pushes_, &context);
  StallGuard guard(&context, setup_->options().stall);
  v1::SeedReply reply;
  const std::unique_ptr<grpc::ClientWriter<v1::SeedChunk>> writer = stub_->SeedParameters(&context, &reply);
  bool open = writer->Write(head);
  v1::SeedChunk chunk;
  for (const SeedFragment& fragment : fragments) {
    const auto payload = std::as_bytes(fragment.values);
    chunk.set_fragment(fragment.id.value());
    for (uint64_t offset = 0; open && offset < payload.size();) {
      offset += FillChunk(payload, offset, &chunk);
      open = writer->Write(chunk);
      guard.Progress(setup_->options().stall);
    }
  }
  writer->WritesDone();
  guard.Progress(setup_->options().seed_answer);
  const grpc::Status status = writer->Finish();
  if (!status.ok() && registration.cancelled()) {
    return absl::CancelledError(
        "the upload of the initial parameters was cancelled: the worker has no time left");
  }
  return setup_->Translate(status, guard.stalled());
}

}  // namespace atl

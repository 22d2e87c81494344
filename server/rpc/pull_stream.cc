#include "server/rpc/pull_stream.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "atoll/v1/coordinator.pb.h"
#include "common/status.h"
#include "protos/wire/chunk_message.h"
#include "server/rpc/decode.h"
#include "server/rpc/encode.h"
#include "server/rpc/write_stream.h"

namespace atoll {
namespace {

class PullStream final : public WriteStream<grpc::ByteBuffer> {
 public:
  PullStream(const CallContext& call, grpc::CallbackServerContext* context)
      : WriteStream<grpc::ByteBuffer>(call, context) {}

  void Start(const std::shared_ptr<PullStream>& self, const grpc::ByteBuffer& request);
  void OnCancel() override;

 private:
  void Ask(const std::shared_ptr<PullStream>& self, const PullCall& call);
  void OnAnswer(absl::StatusOr<PullResult> result);
  void OnWritten() override;
  absl::Status WhyNotToGoOn() const override;
  void OnGone() override;
  void FillChunk();
  void Send();

  WorkerName worker_;
  // Set by the coordinator's answer, before the first write.
  SnapshotPtr snapshot_;
  DeltaPtr delta_;  // set: sent in place of the snapshot's payload
  std::span<const std::byte> payload_;
  std::span<const uint32_t> chunk_crc32c_;
  std::shared_ptr<const void> owner_;
  MonoTime answered_at_;
  uint64_t offset_ = 0;
  uint64_t sent_bytes_ = 0;

  Mutex pull_mutex_;
  std::optional<uint64_t> pull_id_ ABSL_GUARDED_BY(pull_mutex_);
  bool cancelled_ ABSL_GUARDED_BY(pull_mutex_) = false;
};

absl::StatusOr<PullCall> ReadRequest(const grpc::ByteBuffer& bytes) {
  v1::PullRequest request;
  ATOLL_RETURN_IF_ERROR(MessageFromBytes(bytes, &request));
  return DecodePull(request);
}

void PullStream::Start(const std::shared_ptr<PullStream>& self, const grpc::ByteBuffer& request) {
  KeepAlive(self);
  Hold();  // until the coordinator has answered
  absl::StatusOr<PullCall> decoded = ReadRequest(request);
  if (!decoded.ok()) {
    End(decoded.status());
    return Release();
  }
  worker_ = decoded->caller.worker;
  const bool posted = call_.calls->Post([this, self, pull = *std::move(decoded)] { Ask(self, pull); });
  if (posted) return;
  End(Overloaded());
  Release();
}

void PullStream::Ask(const std::shared_ptr<PullStream>& self, const PullCall& call) {
  if (ended()) return Release();
  const uint64_t id = call_.coordinator->Pull(
      call, [self](absl::StatusOr<PullResult> result) { self->OnAnswer(std::move(result)); });
  bool cancelled = false;
  {
    MutexLock lock(&pull_mutex_);
    pull_id_ = id;
    cancelled = cancelled_;
  }
  if (cancelled) call_.coordinator->CancelPull(id);
}

void PullStream::OnCancel() {
  End(absl::CancelledError("the client went away"));
  std::optional<uint64_t> id;
  {
    MutexLock lock(&pull_mutex_);
    cancelled_ = true;
    id = pull_id_;
  }
  // A pull that was answered is not there any more, which is no error.
  if (id) call_.coordinator->CancelPull(*id);
}

void PullStream::OnAnswer(absl::StatusOr<PullResult> result) {
  if (!result.ok()) {
    End(result.status());
    return Release();
  }
  v1::PullChunk header;
  EncodePullHeader(*result, header.mutable_header());
  message_ = MessageToBytes(header);
  if (result->outcome == PullOutcome::kParameters) {
    snapshot_ = std::move(result->snapshot);
    delta_ = std::move(result->delta);
    payload_ = delta_ ? std::span<const std::byte>(delta_->payload) : snapshot_->payload;
    chunk_crc32c_ = delta_ ? delta_->chunk_crc32c : snapshot_->chunk_crc32c;
    owner_ = delta_ ? std::shared_ptr<const void>(delta_) : snapshot_;
    call_.heads->Saw(snapshot_->fragment, snapshot_->version);
    answered_at_ = call_.clock->Now();
  }
  Send();
  Release();
}

void PullStream::OnWritten() {
  if (snapshot_ == nullptr) return End(absl::OkStatus());
  if (offset_ == payload_.size()) {
    if (call_.on_pull_streamed) call_.on_pull_streamed(ToSeconds(call_.clock->Now() - answered_at_));
    return End(absl::OkStatus());
  }
  if (const absl::Status why = WhyNotToGoOn(); !why.ok()) return End(why);
  FillChunk();
  Send();
}

absl::Status PullStream::WhyNotToGoOn() const {
  if (snapshot_ == nullptr || !call_.heads->Outdated(snapshot_->fragment, snapshot_->version)) {
    return absl::OkStatus();
  }
  return absl::AbortedError(
      absl::StrFormat("version %d of fragment %d is more than one behind the head (%d); pull again",
                      snapshot_->version.value(), snapshot_->fragment.value(),
                      call_.heads->Newest(snapshot_->fragment).value()));
}

void PullStream::FillChunk() {
  const size_t bytes = std::min<uint64_t>(kWireChunkBytes, payload_.size() - offset_);
  const ChunkFields fields{.offset = offset_, .crc32c = chunk_crc32c_[offset_ / kWireChunkBytes]};
  message_ = ChunkMessage(fields, payload_.subspan(offset_, bytes), owner_);
  offset_ += bytes;
}

void PullStream::Send() {
  sent_bytes_ += message_.Length() + kMessagePrefixBytes;
  Write();
}

void PullStream::OnGone() {
  message_.Clear();  // it holds the snapshot too
  owner_.reset();
  delta_.reset();
  snapshot_.reset();
  if (sent_bytes_ > 0) call_.coordinator->CountPulledBytes(worker_, sent_bytes_);
}

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* StartPullStream(const CallContext& call,
                                                            grpc::CallbackServerContext* context,
                                                            const grpc::ByteBuffer* request) {
  const auto stream = std::make_shared<PullStream>(call, context);
  stream->Start(stream, *request);
  return stream.get();
}

}  // namespace atoll

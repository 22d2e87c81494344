#include "server/rpc/pull_stream.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "atoll/v1/coordinator.pb.h"
#include "common/status.h"
#include "protos/wire/chunk_message.h"
#include "protos/wire/pull.h"
#include "protos/wire/run_state.h"
#include "server/rpc/admission.h"
#include "server/rpc/encode.h"
#include "server/rpc/write_stream.h"

namespace atl {
namespace {

class PullStream final : public WriteStream<grpc::ByteBuffer>,
                         public std::enable_shared_from_this<PullStream> {
 public:
  PullStream(const CallContext& call, grpc::CallbackServerContext* context)
      : WriteStream<grpc::ByteBuffer>(call, context) {}

  void Start(const std::shared_ptr<PullStream>& self, const grpc::ByteBuffer& request);
  void OnCancel() override;

 private:
  absl::StatusOr<PullCall> Read(const grpc::ByteBuffer& request);
  absl::Status Admit() const;
  void Ask(const std::shared_ptr<PullStream>& self, const PullCall& call);
  void OnAnswer(absl::StatusOr<PullResult> result);
  void OnWritten() override;
  absl::Status WhyNotToGoOn() const override;
  void OnGone() override;
  void SendChunk();
  /// The chunk at offset_ as this frame, or as it is.
  void FillChunk(const PackedChunks::Frame& frame);
  void Send();
  /// What of the payload is to be sent; false, with the stream ended: that is not in it.
  bool TakePart(PullReply* reply);
  bool IsRangeOfThis() const;
  std::span<const std::byte> Chunk() const {
    return payload_.subspan(offset_, std::min<uint64_t>(kWireChunkBytes, payload_.size() - offset_));
  }

  MemberRef caller_;
  WorkerName worker_;      // empty: an observer, whose traffic is not the run's
  bool has_slot_ = false;  // among the observers that pull
  // Set by the coordinator's answer, before the first write.
  SnapshotPtr snapshot_;
  DeltaPtr delta_;  // set: sent in place of the snapshot's payload
  std::span<const std::byte> payload_;
  std::span<const uint32_t> chunk_crc32c_;
  std::shared_ptr<const void> owner_;
  std::shared_ptr<PackedChunks> packed_;  // null: the caller gets chunks as they are
  MonoTime answered_at_;
  std::optional<PullPart> part_;  // that was asked for
  uint64_t parts_ = 1;            // of which the first is
  uint64_t offset_ = 0;
  uint64_t end_ = 0;  // of the payload, or of the part
  uint64_t sent_bytes_ = 0;

  Mutex pull_mutex_;
  std::optional<uint64_t> pull_id_ ABSL_GUARDED_BY(pull_mutex_);
  bool cancelled_ ABSL_GUARDED_BY(pull_mutex_) = false;
};

void PullStream::Start(const std::shared_ptr<PullStream>& self, const grpc::ByteBuffer& request) {
  KeepAlive(self);
  Hold();  // until the coordinator has answered
  absl::StatusOr<PullCall> decoded = Read(request);
  const absl::Status admitted = decoded.ok() ? Admit() : decoded.status();
  if (!admitted.ok()) {
    End(admitted);
    return Release();
  }
  if (!caller_.observes()) worker_ = caller_.worker;
  if (caller_.observes() && call_.observer_pulls != nullptr) {
    has_slot_ = call_.observer_pulls->Take();
    if (!has_slot_) {
      End(TooManyStreams());
      return Release();
    }
  }
  const bool posted = call_.calls->Post([this, self, pull = *std::move(decoded)] { Ask(self, pull); });
  if (posted) return;
  End(Overloaded());
  Release();
}

absl::StatusOr<PullCall> PullStream::Read(const grpc::ByteBuffer& bytes) {
  v1::PullRequest request;
  ATOLL_RETURN_IF_ERROR(MessageFromBytes(bytes, &request));
  ATOLL_ASSIGN_OR_RETURN(part_, PullPartFromProto(request));
  parts_ = std::max<uint64_t>(request.parts(), 1);
  ATOLL_ASSIGN_OR_RETURN(const PullCall call, PullCallFromProto(request));
  ATOLL_ASSIGN_OR_RETURN(caller_, MemberRefFromProto(request.worker()));
  return call;
}

absl::Status PullStream::Admit() const {
  ATOLL_ASSIGN_OR_RETURN(const Identity who, IdentifyCaller(call_, *context_));
  return CheckMember(who, caller_.worker, MemberAct::kLook);
}

void PullStream::Ask(const std::shared_ptr<PullStream>& self, const PullCall& call) {
  if (ended()) return Release();
  const ScopedTrace scope(trace_);
  const uint64_t id = call_.coordinator->Pull(
      caller_, call, [self](absl::StatusOr<PullResult> result) { self->OnAnswer(std::move(result)); });
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
  PullReply reply = ReplyOf(*result);
  if (result->outcome == PullOutcome::kParameters) {
    snapshot_ = std::move(result->snapshot);
    delta_ = std::move(result->delta);
    payload_ = delta_ ? std::span<const std::byte>(delta_->payload) : snapshot_->payload;
    chunk_crc32c_ = delta_ ? delta_->chunk_crc32c : snapshot_->chunk_crc32c;
    owner_ = delta_ ? std::shared_ptr<const void>(delta_) : snapshot_;
    if (result->zstd) packed_ = delta_ ? delta_->packed : snapshot_->packed;
    call_.heads->Saw(snapshot_->fragment, snapshot_->version);
    answered_at_ = call_.clock->Now();
    if (!TakePart(&reply)) return Release();
  }
  v1::PullChunk first;
  *first.mutable_header() = PullReplyToProto(reply);
  message_ = MessageToBytes(first);
  Send();
  Release();
}

bool PullStream::IsRangeOfThis() const {
  if (!part_) return false;
  const Version version = delta_ ? delta_->to : snapshot_->version;
  const bool same_base =
      delta_ ? part_->delta_base == std::optional(delta_->from) : !part_->delta_base.has_value();
  return part_->version == version && same_base;
}

bool PullStream::TakePart(PullReply* reply) {
  end_ = payload_.size();
  const bool in_range = IsRangeOfThis();
  if (in_range) {
    if (part_->first_byte >= payload_.size()) {
      End(absl::InvalidArgumentError(absl::StrFormat("range: begins at byte %d of a payload of %d bytes",
                                                     part_->first_byte, payload_.size())));
      return false;
    }
    offset_ = part_->first_byte;
    if (part_->end_byte != 0) end_ = std::min<uint64_t>(end_, part_->end_byte);
  }
  if (!in_range && parts_ == 1) return true;
  const uint64_t share = (end_ - offset_ + parts_ - 1) / parts_;
  end_ = std::min(end_, offset_ + (share + kWireChunkBytes - 1) / kWireChunkBytes * kWireChunkBytes);
  reply->first_byte = offset_;
  reply->end_byte = end_;
  return true;
}

void PullStream::OnWritten() {
  if (snapshot_ == nullptr) return End(absl::OkStatus());
  if (offset_ == end_) {
    if (call_.on_pull_streamed) call_.on_pull_streamed(ToSeconds(call_.clock->Now() - answered_at_));
    return End(absl::OkStatus());
  }
  if (const absl::Status why = WhyNotToGoOn(); !why.ok()) return End(why);
  SendChunk();
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

void PullStream::SendChunk() {
  if (packed_ == nullptr) {
    FillChunk(nullptr);
    return Send();
  }
  const size_t index = offset_ / kWireChunkBytes;
  if (const std::optional<PackedChunks::Frame> frame = packed_->Find(index)) {
    FillChunk(*frame);
    return Send();
  }
  // Milliseconds of work: not for one of gRPC's threads.
  Hold();
  const bool posted = call_.uploads->PostAdmitted([self = shared_from_this(), index] {
    self->FillChunk(self->packed_->Pack(index, self->Chunk()));
    self->Send();
    self->Release();
  });
  if (posted) return;
  End(Overloaded());
  Release();
}

void PullStream::FillChunk(const PackedChunks::Frame& frame) {
  const std::span<const std::byte> chunk = Chunk();
  ChunkFields fields{.offset = offset_, .crc32c = chunk_crc32c_[offset_ / kWireChunkBytes]};
  offset_ += chunk.size();
  if (frame == nullptr) {
    message_ = ChunkMessage(fields, chunk, owner_);
    return;
  }
  fields.compression = v1::COMPRESSION_ZSTD;
  fields.uncompressed_bytes = static_cast<uint32_t>(chunk.size());
  message_ = ChunkMessage(fields, *frame, frame);
}

void PullStream::Send() {
  sent_bytes_ += message_.Length() + kMessagePrefixBytes;
  Write();
}

void PullStream::OnGone() {
  message_.Clear();  // it holds the snapshot too
  owner_.reset();
  packed_.reset();
  delta_.reset();
  snapshot_.reset();
  if (has_slot_) call_.observer_pulls->Leave();
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

}  // namespace atl

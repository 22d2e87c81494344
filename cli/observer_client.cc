#include "cli/observer_client.h"

#include <chrono>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_format.h"
#include "cli/exit_code.h"
#include "cli/rpc_client.h"
#include "cli/text.h"
#include "common/content_hash.h"
#include "common/crc32c.h"
#include "common/digest.h"
#include "common/human.h"
#include "common/status.h"
#include "core/codec.h"
#include "grpcpp/channel.h"
#include "grpcpp/completion_queue.h"
#include "protos/wire/join.h"
#include "protos/wire/pull.h"
#include "protos/wire/run_state.h"

namespace atl {
namespace {

// Timeout for a version that other fragments already have, so it is about to be published.
constexpr Duration kNewerWait = Seconds(2);

std::unique_ptr<grpc::ClientContext> Context(const ChannelSecurity& security, Duration deadline) {
  auto context = std::make_unique<grpc::ClientContext>();
  security.Authorize(*context);
  context->set_deadline(std::chrono::system_clock::now() +
                        std::chrono::duration_cast<std::chrono::milliseconds>(deadline));
  return context;
}

/// The messages of a pull. The pull fails when no message arrives for a while; it has no limit on its total
/// time.
class PullStream {
 public:
  PullStream(v1::Coordinator::Stub& stub, const ChannelSecurity& security, const v1::PullRequest& request,
             Duration stall)
      : stall_(stall) {
    security.Authorize(context_);
    reader_ = stub.AsyncPull(&context_, request, &queue_, this);
    Await();
  }
  ~PullStream() {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  PullStream(const PullStream&) = delete;
  PullStream& operator=(const PullStream&) = delete;

  bool Read(v1::PullChunk& chunk) {
    if (stalled_) return false;
    reader_->Read(&chunk, this);
    return Await();
  }
  /// The reason why Read returned false: the stream ended early.
  absl::Status Finish(const std::string& address) {
    grpc::Status status;
    if (!stalled_) {
      reader_->Finish(&status, this);
      Await();
    }
    if (stalled_) {
      return absl::UnavailableError(
          absl::StrFormat("the pull stalled: %s sent nothing for %s", address, HumanDuration(stall_)));
    }
    return FromGrpcStatus(status, address, CoordinatorPort::kData);
  }

 private:
  bool Await() {
    void* tag = nullptr;
    bool ok = false;
    const auto until = std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::system_clock::duration>(stall_);
    if (queue_.AsyncNext(&tag, &ok, until) == grpc::CompletionQueue::GOT_EVENT) return ok;
    stalled_ = true;
    context_.TryCancel();
    queue_.Next(&tag, &ok);  // after this, the started operation no longer uses the caller's memory
    return false;
  }

  const Duration stall_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReader<v1::PullChunk>> reader_;
  bool stalled_ = false;
};

/// Fills `payload` with the chunks after the header. Checks the order and the checksum of each chunk.
absl::Status ReadChunks(PullStream& stream, std::span<std::byte> payload, const std::string& address) {
  v1::PullChunk chunk;
  uint64_t received = 0;
  while (received < payload.size() && stream.Read(chunk)) {
    const std::string& data = chunk.data();
    if (chunk.offset() != received || data.size() > payload.size() - received) {
      return absl::DataLossError(absl::StrFormat(
          "the pull is out of order: it continued at byte %d instead of %d", chunk.offset(), received));
    }
    if (data.empty()) return absl::DataLossError(absl::StrFormat("the chunk at byte %d is empty", received));
    if (Crc32c(data) != chunk.crc32c()) {
      return absl::DataLossError(
          absl::StrFormat("the chunk at byte %d was damaged in transit; retry", received));
    }
    std::memcpy(payload.data() + received, data.data(), data.size());
    received += data.size();
  }
  if (received == payload.size()) return absl::OkStatus();
  const absl::Status ended = stream.Finish(address);
  const std::string why = ended.ok() ? "" : ": " + std::string(ended.message());
  return absl::UnavailableError(
      absl::StrFormat("the pull was interrupted at byte %d of %d%s", received, payload.size(), why));
}

absl::StatusOr<const Codec*> CheckHeader(const v1::PullHeader& header, const PullLimits& limits) {
  if (header.outcome() != v1::PullHeader::PARAMETERS) {
    return absl::FailedPreconditionError(
        "the run has no parameters yet; it " +
        WaitsText(header.waiting_for().empty() ? "waiting for a worker to seed it" : header.waiting_for()));
  }
  const Codec* codec = FindCodec(static_cast<CodecKind>(header.codec()));
  if (codec == nullptr) {
    return absl::UnimplementedError(absl::StrFormat(
        "the run publishes with codec %d, which this program does not have; use a newer atollctl",
        header.codec()));
  }
  if (header.elements() != limits.elements) {
    return absl::DataLossError(absl::StrFormat("the fragment has %d values, but its tensors have %d",
                                               header.elements(), limits.elements));
  }
  if (header.payload_bytes() != codec->EncodedSize(header.elements())) {
    return absl::DataLossError("the pull's header is inconsistent");
  }
  return codec;
}

}  // namespace

ObserverClient::ObserverClient(std::string address, SecurityPtr security,
                               std::unique_ptr<v1::Coordinator::Stub> stub, v1::JoinReply run, MemberRef self)
    : address_(std::move(address)),
      security_(std::move(security)),
      stub_(std::move(stub)),
      run_(std::move(run)),
      self_(std::move(self)) {}

ObserverClient::~ObserverClient() {
  // A coordinator stores nothing about an observer. Version 0.1.0 made it a member with a lease.
  if (self_.observes()) return;
  v1::LeaveRequest request;
  *request.mutable_worker() = MemberRefToProto(self_);
  request.set_reason("done reading");
  v1::LeaveReply reply;
  stub_->Leave(Context(*security_, Seconds(2)).get(), request, &reply).ok();
}

absl::StatusOr<std::unique_ptr<ObserverClient>> ObserverClient::Join(const std::string& address,
                                                                     Duration deadline, SecurityPtr security,
                                                                     const WaitNotice& notice) {
  const auto channel = OpenChannel(address, *security);
  ATOLL_RETURN_IF_ERROR(AwaitConnection(*channel, address, *security, deadline, CoordinatorPort::kData,
                                        /*cancelled=*/nullptr, notice));
  auto stub = v1::Coordinator::NewStub(channel);
  const JoinCall call{.worker = "observer-" + ToHex(RandomBytes(4)),
                      .secret = RandomBytes(32),
                      .role = WorkerRole::kObserver};
  v1::JoinReply reply;
  const grpc::Status joined = stub->Join(Context(*security, deadline).get(), JoinCallToProto(call), &reply);
  if (!joined.ok()) return FromGrpcStatus(joined, address, CoordinatorPort::kData);
  MemberRef self{.run_id = reply.run_id(),
                 .epoch = Epoch(reply.epoch()),
                 .worker = call.worker,
                 .incarnation = Incarnation(reply.incarnation())};
  return std::unique_ptr<ObserverClient>(
      new ObserverClient(address, std::move(security), std::move(stub), std::move(reply), std::move(self)));
}

absl::StatusOr<PulledFragment> ObserverClient::PullHead(uint32_t fragment, const PullLimits& limits) {
  PullCall call{.fragment = FragmentId(fragment)};
  if (limits.newer_than.has_value()) {
    call.after = Version(*limits.newer_than);
    call.wait = kNewerWait;
  }
  PullStream stream(*stub_, *security_, PullCallToProto(self_, call), limits.stall);
  v1::PullChunk first;
  if (!stream.Read(first)) {
    const absl::Status status = stream.Finish(address_);
    return status.ok() ? absl::UnavailableError("the pull ended without data") : status;
  }
  if (limits.newer_than.has_value() && first.header().outcome() != v1::PullHeader::PARAMETERS) {
    return absl::NotFoundError(
        absl::StrFormat("fragment %d has no version above %d", fragment, *limits.newer_than));
  }
  const auto codec = CheckHeader(first.header(), limits);
  if (!codec.ok()) return FromCoordinator(codec.status());
  std::vector<std::byte> payload(first.header().payload_bytes());
  ATOLL_RETURN_IF_ERROR(ReadChunks(stream, payload, address_));
  const Hash128 hash = HashBytes(payload);
  if (hash.low != first.header().published().low() || hash.high != first.header().published().high()) {
    return absl::DataLossError("the received parameters do not match the published hash; retry");
  }
  ATOLL_RETURN_IF_ERROR((*codec)->Validate(payload, first.header().elements()));
  PulledFragment result{.version = first.header().version(),
                        .values = std::vector<float>(first.header().elements())};
  (*codec)->DecodeRange(payload, first.header().elements(), 0, result.values);
  return result;
}

absl::Status ObserverClient::Watch(uint64_t after_sequence,
                                   const std::function<bool(const v1::RunEvent&)>& sink) {
  v1::WatchRunRequest request;
  request.set_after_sequence(after_sequence);
  grpc::ClientContext context;
  security_->Authorize(context);
  const auto reader = stub_->WatchRun(&context, request);
  v1::RunEvent event;
  while (reader->Read(&event)) {
    if (sink(event)) continue;
    context.TryCancel();
    reader->Finish().ok();
    return absl::OkStatus();
  }
  const grpc::Status status = reader->Finish();
  return status.ok() ? absl::OkStatus() : FromGrpcStatus(status, address_, CoordinatorPort::kData);
}

}  // namespace atl

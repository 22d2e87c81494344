#include "client/rpc/grpc_pull.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "atoll/v1/coordinator.grpc.pb.h"
#include "client/rpc/chunks.h"
#include "client/rpc/convert.h"
#include "client/rpc/pull_reading.h"
#include "client/rpc/range_pull.h"
#include "client/rpc/stall_guard.h"
#include "common/status.h"
#include "protos/wire/trace.h"

namespace atl {
namespace {

/// What is in place already when the answer goes on where the attempt before broke.
std::vector<Hash128> BlocksInPlace(const PulledVersion& pulled, const PullRequest& pull_request) {
  if (pull_request.progress == nullptr || pulled.first_byte == 0) return {};
  return pull_request.progress->blocks;
}

absl::Status CheckHash(const PulledVersion& pulled, std::span<const Hash128> blocks) {
  if (pulled.delta_base.has_value()) return absl::OkStatus();  // `published` is not of these bytes
  const Hash128 hash = CombineBlocks(blocks, pulled.payload_bytes);
  if (hash.low == pulled.published.low && hash.high == pulled.published.high) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "version %d arrived with another content hash than was published", pulled.version.value()));
}

constexpr char kPullMethod[] = "/atoll.v1.Coordinator/Pull";

}  // namespace

GrpcPull::GrpcPull(const CallSetup* setup, const std::shared_ptr<grpc::Channel>& channel, const Clock* clock)
    : setup_(setup),
      clock_(clock),
      channel_(channel),
      pull_method_(kPullMethod, grpc::internal::RpcMethod::SERVER_STREAMING, channel) {}

std::unique_ptr<GrpcPull::ByteReader> GrpcPull::StartPull(grpc::ClientContext& context,
                                                          const MemberRef& member,
                                                          const PullRequest& pull_request) const {
  v1::PullRequest request = PullRequestToProto(member, pull_request);
  const size_t parts = 1 + setup_->options().range_channels.size();
  if (parts > 1) request.set_parts(static_cast<uint32_t>(parts));
  return std::unique_ptr<ByteReader>(grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(
      channel_.get(), pull_method_, &context, request));
}

std::vector<std::unique_ptr<RangePull>> GrpcPull::StartRangePulls(const MemberRef& member,
                                                                  const PullRequest& pull_request,
                                                                  const PulledVersion& pulled,
                                                                  std::span<std::byte> payload) {
  std::vector<std::unique_ptr<RangePull>> pulls;
  uint64_t first = pulled.end_byte;
  for (size_t left = setup_->options().range_channels.size(); left > 0 && first < pulled.payload_bytes;
       --left) {
    const uint64_t share = (pulled.payload_bytes - first + left - 1) / left;
    const uint64_t whole_blocks = (share + kHashBlockBytes - 1) / kHashBlockBytes * kHashBlockBytes;
    const uint64_t size = std::min(whole_blocks, pulled.payload_bytes - first);
    pulls.push_back(std::make_unique<RangePull>(
        RangePull::Call{.setup = setup_, .calls = &pulls_, .method = &pull_method_},
        setup_->options().range_channels[left - 1], member, pull_request, pulled, first,
        payload.subspan(first, size)));
    first += size;
  }
  return pulls;
}

absl::Status GrpcPull::Receive(const MemberRef& member, const PullRequest& pull_request,
                               const PulledVersion& pulled, std::span<std::byte> payload, ByteReader& reader,
                               StallGuard& guard, uint64_t* wire_bytes) {
  if (pulled.payload_bytes > payload.size()) {
    return absl::InvalidArgumentError(absl::StrFormat("there is room for %d bytes of a pull of %d bytes",
                                                      payload.size(), pulled.payload_bytes));
  }
  const auto range_pulls = StartRangePulls(member, pull_request, pulled, payload);
  ChunkPlacer placer(payload.first(pulled.end_byte), BlocksInPlace(pulled, pull_request));
  absl::Status received = ReadPullChunks(reader, placer, guard, setup_->options().stall, wire_bytes);
  std::vector<Hash128> blocks = placer.digests();
  bool complete = placer.complete();
  for (const std::unique_ptr<RangePull>& range_pull : range_pulls) {
    if (!received.ok()) range_pull->Cancel();
    const absl::Status came = range_pull->Finish();
    *wire_bytes += range_pull->wire_bytes();
    if (received.ok()) received = came;
    // Another attempt goes on where the first gap is.
    if (complete)
      blocks.insert(blocks.end(), range_pull->placer().digests().begin(),
                    range_pull->placer().digests().end());
    complete = complete && range_pull->placer().complete();
  }
  if (received.ok()) received = CheckHash(pulled, blocks);
  if (pull_request.progress == nullptr) return received;
  *pull_request.progress = {
      .epoch = pulled.epoch, .version = pulled.version, .delta_base = pulled.delta_base};
  // Whole and wrong: no part of it is worth keeping.
  if (!received.ok() && !complete) pull_request.progress->blocks = std::move(blocks);
  return received;
}

absl::StatusOr<PulledVersion> GrpcPull::Pull(const MemberRef& member, const PullRequest& pull_request,
                                             std::span<std::byte> payload) {
  setup_->AwaitConnection(*channel_, pulls_);
  grpc::ClientContext context;
  setup_->Introduce(context);
  const CallSet::Registration registration(&pulls_, &context);
  const MonoTime begin = clock_->Now();
  StallGuard guard(&context, pull_request.call.wait + setup_->options().stall);
  const std::unique_ptr<ByteReader> reader = StartPull(context, member, pull_request);
  uint64_t wire_bytes = 0;
  bool ended = false;
  const absl::StatusOr<v1::PullHeader> header = ReadPullHeader(*reader, &wire_bytes, &ended);
  registration.Answered();
  const MonoTime answered = clock_->Now();
  guard.Progress(setup_->options().stall);
  absl::StatusOr<PulledVersion> pulled =
      header.ok() ? PulledFromProto(*header, pull_request, !setup_->options().range_channels.empty())
                  : absl::StatusOr<PulledVersion>(header.status());
  absl::Status received = pulled.status();
  if (received.ok() && pulled->outcome == PullOutcome::kParameters) {
    received = Receive(member, pull_request, *pulled, payload, *reader, guard, &wire_bytes);
  }
  // What has ended by itself keeps the status that it ended with: a cancellation could overtake it.
  const bool had_error = !received.ok();
  const bool given_up = had_error && !ended;
  if (given_up) context.TryCancel();
  const grpc::Status finished = reader->Finish();
  if (registration.cancelled())
    return absl::CancelledError("the pull was cancelled: there is a command to follow");
  // The stream's own status says more than how it looked from here, unless it is our own cancellation.
  const bool ours = given_up && finished.error_code() == grpc::StatusCode::CANCELLED && !guard.stalled();
  if (!finished.ok() && !ours) return setup_->Translate(finished, guard.stalled());
  if (had_error) return received;
  pulled->wire_bytes = wire_bytes;
  pulled->waited = answered - begin;
  pulled->transfer = clock_->Now() - answered;
  return pulled;
}

}  // namespace atl

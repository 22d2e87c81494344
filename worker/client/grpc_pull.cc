#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "protos/wire/trace.h"
#include "worker/client/chunks.h"
#include "worker/client/convert.h"
#include "worker/client/grpc_connection.h"
#include "worker/client/pull_reading.h"
#include "worker/client/registration.h"
#include "worker/client/side_pull.h"
#include "worker/client/stall_guard.h"

namespace atoll {
namespace {

/// What is in place already when the answer goes on where the attempt before broke.
std::vector<Hash128> BlocksInPlace(const PulledVersion& pulled, const PullWish& wish) {
  if (wish.progress == nullptr || pulled.first_byte == 0) return {};
  return wish.progress->blocks;
}

absl::Status CheckHash(const PulledVersion& pulled, std::span<const Hash128> blocks) {
  if (pulled.delta_base.has_value()) return absl::OkStatus();  // `published` is not of these bytes
  const Hash128 hash = CombineBlocks(blocks, pulled.payload_bytes);
  if (hash.low == pulled.published.low && hash.high == pulled.published.high) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "version %d arrived with another content hash than was published", pulled.version.value()));
}

}  // namespace

std::unique_ptr<GrpcConnection::ByteReader> GrpcConnection::StartPull(grpc::ClientContext& context,
                                                                      const MemberRef& member,
                                                                      const PullWish& wish) const {
  v1::PullRequest request = PullRequestToProto(member, wish);
  const size_t parts = 1 + options_.side_channels.size();
  if (parts > 1) request.set_parts(static_cast<uint32_t>(parts));
  return std::unique_ptr<ByteReader>(grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(
      channel_.get(), pull_method_, &context, request));
}

std::vector<std::unique_ptr<GrpcConnection::SidePull>> GrpcConnection::StartSidePulls(
    const MemberRef& member, const PullWish& wish, const PulledVersion& pulled,
    std::span<std::byte> payload) {
  std::vector<std::unique_ptr<SidePull>> pulls;
  uint64_t first = pulled.end_byte;
  for (size_t left = options_.side_channels.size(); left > 0 && first < pulled.payload_bytes; --left) {
    const uint64_t share = (pulled.payload_bytes - first + left - 1) / left;
    const uint64_t whole_blocks = (share + kHashBlockBytes - 1) / kHashBlockBytes * kHashBlockBytes;
    const uint64_t size = std::min(whole_blocks, pulled.payload_bytes - first);
    pulls.push_back(std::make_unique<SidePull>(this, options_.side_channels[left - 1], member, wish, pulled,
                                               first, payload.subspan(first, size)));
    first += size;
  }
  return pulls;
}

absl::Status GrpcConnection::Receive(const MemberRef& member, const PullWish& wish,
                                     const PulledVersion& pulled, std::span<std::byte> payload,
                                     ByteReader& reader, StallGuard& guard, uint64_t* wire_bytes) {
  if (pulled.payload_bytes > payload.size()) {
    return absl::InvalidArgumentError(absl::StrFormat("there is room for %d bytes of a pull of %d bytes",
                                                      payload.size(), pulled.payload_bytes));
  }
  const auto sides = StartSidePulls(member, wish, pulled, payload);
  ChunkPlacer placer(payload.first(pulled.end_byte), BlocksInPlace(pulled, wish));
  absl::Status received = ReadPullChunks(reader, placer, guard, options_.stall, wire_bytes);
  std::vector<Hash128> blocks = placer.digests();
  bool complete = placer.complete();
  for (const std::unique_ptr<SidePull>& side : sides) {
    if (!received.ok()) side->Cancel();
    const absl::Status came = side->Finish();
    *wire_bytes += side->wire_bytes();
    if (received.ok()) received = came;
    // Another attempt goes on where the first gap is.
    if (complete)
      blocks.insert(blocks.end(), side->placer().digests().begin(), side->placer().digests().end());
    complete = complete && side->placer().complete();
  }
  if (received.ok()) received = CheckHash(pulled, blocks);
  if (wish.progress == nullptr) return received;
  *wish.progress = {.epoch = pulled.epoch, .version = pulled.version, .delta_base = pulled.delta_base};
  // Whole and wrong: no part of it is worth keeping.
  if (!received.ok() && !complete) wish.progress->blocks = std::move(blocks);
  return received;
}

absl::StatusOr<PulledVersion> GrpcConnection::Pull(const MemberRef& member, const PullWish& wish,
                                                   std::span<std::byte> payload) {
  AwaitConnection();
  grpc::ClientContext context;
  Introduce(context);
  const Registration registration(this, &GrpcConnection::pulls_, &context);
  const MonoTime begin = clock_->Now();
  StallGuard guard(&context, wish.wait + options_.stall);
  const std::unique_ptr<ByteReader> reader = StartPull(context, member, wish);
  uint64_t wire_bytes = 0;
  bool ended = false;
  const absl::StatusOr<v1::PullHeader> header = ReadPullHeader(*reader, &wire_bytes, &ended);
  registration.Answered();
  const MonoTime answered = clock_->Now();
  guard.Progress(options_.stall);
  absl::StatusOr<PulledVersion> pulled = header.ok()
                                             ? PulledFromProto(*header, wish, !options_.side_channels.empty())
                                             : absl::StatusOr<PulledVersion>(header.status());
  absl::Status received = pulled.status();
  if (received.ok() && pulled->kind == PullKind::kParameters) {
    received = Receive(member, wish, *pulled, payload, *reader, guard, &wire_bytes);
  }
  // What has ended by itself keeps the status that it ended with: a cancellation could overtake it.
  const bool had_error = !received.ok();
  const bool given_up = had_error && !ended;
  if (given_up) context.TryCancel();
  const grpc::Status finished = reader->Finish();
  if (registration.cancelled())
    return absl::CancelledError("the pull was cancelled: there is an order to follow");
  // The stream's own status says more than how it looked from here, unless it is our own cancellation.
  const bool ours = given_up && finished.error_code() == grpc::StatusCode::CANCELLED && !guard.stalled();
  if (!finished.ok() && !ours) return Translate(finished, guard.stalled());
  if (had_error) return received;
  pulled->wire_bytes = wire_bytes;
  pulled->waited = answered - begin;
  pulled->transfer = clock_->Now() - answered;
  return pulled;
}

}  // namespace atoll

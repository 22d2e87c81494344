#include <memory>

#include "absl/strings/str_format.h"
#include "common/content_hash.h"
#include "common/status.h"
#include "worker/client/chunks.h"
#include "worker/client/convert.h"
#include "worker/client/grpc_connection.h"
#include "worker/client/registration.h"
#include "worker/client/stall_guard.h"

namespace atoll {
namespace {

using Reader = grpc::ClientReader<v1::PullChunk>;

/// Reads the data that follows the header into place, and checks the whole of it.
absl::Status ReadPayload(Reader& reader, const PulledVersion& pulled, std::span<std::byte> payload,
                         StallGuard& guard, Duration stall, uint64_t* wire_bytes) {
  v1::PullChunk chunk;
  uint64_t received = 0;
  while (received < payload.size()) {
    if (!reader.Read(&chunk)) {
      return absl::UnavailableError(
          absl::StrFormat("the pull broke after %d of %d bytes", received, payload.size()));
    }
    guard.Progress(stall);
    *wire_bytes += chunk.ByteSizeLong() + kGrpcFrameBytes;
    ATOLL_RETURN_IF_ERROR(PlaceChunk(chunk, received, payload));
    received += chunk.data().size();
  }
  if (reader.Read(&chunk)) return absl::DataLossError("the pull goes on after its last byte");
  const Hash128 hash = HashBytes(payload);
  if (hash.low == pulled.published.low && hash.high == pulled.published.high) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "version %d arrived with another content hash than was published", pulled.version.value()));
}

}  // namespace

absl::StatusOr<PulledVersion> GrpcConnection::Pull(const MemberRef& member, const PullWish& wish,
                                                   std::span<std::byte> payload) {
  AwaitConnection();
  grpc::ClientContext context;
  const Registration registration(this, &GrpcConnection::pulls_, &context);
  const MonoTime begin = clock_->Now();
  StallGuard guard(&context, wish.wait + options_.stall);
  const std::unique_ptr<Reader> reader = stub_->Pull(&context, PullRequestToProto(member, wish));
  v1::PullChunk first;
  const bool has_header = reader->Read(&first) && first.has_header();
  const MonoTime answered = clock_->Now();
  guard.Progress(options_.stall);
  absl::StatusOr<PulledVersion> pulled =
      has_header ? PulledFromProto(first.header(), wish)
                 : absl::InternalError("the coordinator ended a pull without a header");
  absl::Status received = pulled.status();
  uint64_t wire_bytes = first.ByteSizeLong() + kGrpcFrameBytes;
  if (received.ok() && pulled->kind == PullKind::kParameters) {
    received =
        first.header().payload_bytes() == payload.size()
            ? ReadPayload(*reader, *pulled, payload, guard, options_.stall, &wire_bytes)
            : absl::InvalidArgumentError(absl::StrFormat("a pull of %d bytes where %d were expected",
                                                         first.header().payload_bytes(), payload.size()));
  }
  if (!received.ok()) context.TryCancel();
  const bool had_error = !received.ok();
  const grpc::Status finished = reader->Finish();
  if (registration.cancelled()) return absl::CancelledError("the pull was cancelled: the worker is to stop");
  // The stream's own status says more than how it looked from here, unless it is our own cancellation.
  const bool ours = finished.error_code() == grpc::StatusCode::CANCELLED && !guard.stalled();
  if (!finished.ok() && !(had_error && ours)) return Translate(finished, guard.stalled());
  if (had_error) return received;
  pulled->wire_bytes = wire_bytes;
  pulled->waited = answered - begin;
  pulled->transfer = clock_->Now() - answered;
  return pulled;
}

}  // namespace atoll

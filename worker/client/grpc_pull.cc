#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "protos/wire/chunk_message.h"
#include "protos/wire/trace.h"
#include "worker/client/chunks.h"
#include "worker/client/convert.h"
#include "worker/client/grpc_connection.h"
#include "worker/client/registration.h"
#include "worker/client/stall_guard.h"

namespace atoll {
namespace {

using Reader = grpc::ClientReader<grpc::ByteBuffer>;

absl::Status PlaceMessage(const grpc::ByteBuffer& message, ChunkPlacer& placer) {
  const MessagePieces arrived(message);
  ATOLL_ASSIGN_OR_RETURN(const ChunkFrame frame, ParseChunkFrame(arrived.pieces()));
  return placer.Place(frame);
}

/// What is in place already when the answer goes on where the attempt before broke.
std::vector<Hash128> BlocksInPlace(const PulledVersion& pulled, const PullWish& wish) {
  if (wish.progress == nullptr || pulled.first_byte == 0) return {};
  return wish.progress->blocks;
}

/// Reads the data that follows the header into place, and checks the whole of it.
class PayloadReader {
 public:
  PayloadReader(const PulledVersion& pulled, const PullWish& wish, std::span<std::byte> payload)
      : pulled_(pulled), wish_(wish), placer_(payload, BlocksInPlace(pulled, wish)) {}

  absl::Status Read(Reader& reader, StallGuard& guard, Duration stall, uint64_t* wire_bytes) {
    const absl::Status received = ReadChunks(reader, guard, stall, wire_bytes);
    if (wish_.progress != nullptr) {
      *wish_.progress = {
          .epoch = pulled_.epoch, .version = pulled_.version, .delta_base = pulled_.delta_base};
      // Whole and wrong: no part of it is worth keeping.
      if (!received.ok() && !placer_.complete()) wish_.progress->blocks = placer_.digests();
    }
    return received;
  }

 private:
  absl::Status ReadChunks(Reader& reader, StallGuard& guard, Duration stall, uint64_t* wire_bytes) {
    grpc::ByteBuffer message;
    while (!placer_.complete()) {
      if (!reader.Read(&message)) {
        return absl::UnavailableError(absl::StrFormat("the pull broke after %d of %d bytes",
                                                      placer_.received_bytes(), pulled_.payload_bytes));
      }
      guard.Progress(stall);
      *wire_bytes += message.Length() + kMessagePrefixBytes;
      ATOLL_RETURN_IF_ERROR(PlaceMessage(message, placer_));
    }
    if (reader.Read(&message)) return absl::DataLossError("the pull goes on after its last byte");
    if (pulled_.delta_base.has_value()) return absl::OkStatus();  // `published` is not of these bytes
    const Hash128 hash = placer_.hash();
    if (hash.low == pulled_.published.low && hash.high == pulled_.published.high) return absl::OkStatus();
    return absl::DataLossError(absl::StrFormat(
        "version %d arrived with another content hash than was published", pulled_.version.value()));
  }

  const PulledVersion& pulled_;
  const PullWish& wish_;
  ChunkPlacer placer_;
};

/// The header in the first message. `ended`: there was none, and the stream's own status says why.
absl::StatusOr<v1::PullHeader> ReadHeader(Reader& reader, uint64_t* wire_bytes, bool* ended) {
  grpc::ByteBuffer message;
  v1::PullChunk first;
  *ended = !reader.Read(&message);
  if (*ended) return absl::InternalError("the coordinator ended a pull without a header");
  if (!MessageFromBytes(message, &first).ok() || !first.has_header()) {
    return absl::InternalError("the coordinator began a pull with something else than a header");
  }
  *wire_bytes += message.Length() + kMessagePrefixBytes;
  return first.header();
}

}  // namespace

std::unique_ptr<GrpcConnection::ByteReader> GrpcConnection::StartPull(grpc::ClientContext& context,
                                                                      const MemberRef& member,
                                                                      const PullWish& wish) const {
  return std::unique_ptr<ByteReader>(grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(
      channel_.get(), pull_method_, &context, PullRequestToProto(member, wish)));
}

absl::StatusOr<PulledVersion> GrpcConnection::Pull(const MemberRef& member, const PullWish& wish,
                                                   std::span<std::byte> payload) {
  AwaitConnection();
  grpc::ClientContext context;
  Introduce(context);
  const Registration registration(this, &GrpcConnection::pulls_, &context);
  const MonoTime begin = clock_->Now();
  StallGuard guard(&context, wish.wait + options_.stall);
  const std::unique_ptr<Reader> reader = StartPull(context, member, wish);
  uint64_t wire_bytes = 0;
  bool ended = false;
  const absl::StatusOr<v1::PullHeader> header = ReadHeader(*reader, &wire_bytes, &ended);
  registration.Answered();
  const MonoTime answered = clock_->Now();
  guard.Progress(options_.stall);
  absl::StatusOr<PulledVersion> pulled =
      header.ok() ? PulledFromProto(*header, wish) : absl::StatusOr<PulledVersion>(header.status());
  absl::Status received = pulled.status();
  if (received.ok() && pulled->kind == PullKind::kParameters) {
    received =
        pulled->payload_bytes <= payload.size()
            ? PayloadReader(*pulled, wish, payload.first(pulled->payload_bytes))
                  .Read(*reader, guard, options_.stall, &wire_bytes)
            : absl::InvalidArgumentError(absl::StrFormat("there is room for %d bytes of a pull of %d bytes",
                                                         payload.size(), pulled->payload_bytes));
  }
  // What has ended by itself keeps the status that it ended with: a cancellation could overtake it.
  if (!received.ok() && !ended) context.TryCancel();
  const bool had_error = !received.ok();
  const grpc::Status finished = reader->Finish();
  if (registration.cancelled())
    return absl::CancelledError("the pull was cancelled: there is an order to follow");
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

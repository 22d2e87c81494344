#include "worker/client/range_pull.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "common/trace_context.h"
#include "worker/client/convert.h"
#include "worker/client/pull_reading.h"
#include "worker/client/registration.h"

namespace atl {
namespace {

v1::PullRequest RequestFor(const MemberRef& member, PullRequest pull_request, const PulledVersion& whole,
                           uint64_t first, uint64_t end) {
  pull_request.progress = nullptr;
  v1::PullRequest request = PullRequestToProto(member, pull_request);
  v1::PullRange& range = *request.mutable_range();
  range.set_version(whole.version.value());
  if (whole.delta_base.has_value()) range.set_delta_base(whole.delta_base->value());
  range.set_first_byte(first);
  if (end < whole.payload_bytes) range.set_end_byte(end);
  return request;
}

}  // namespace

GrpcConnection::RangePull::RangePull(GrpcConnection* connection, std::shared_ptr<grpc::Channel> channel,
                                     const MemberRef& member, const PullRequest& pull_request,
                                     const PulledVersion& whole, uint64_t first, std::span<std::byte> out)
    : connection_(connection),
      channel_(std::move(channel)),
      request_(RequestFor(member, pull_request, whole, first, first + out.size())),
      whole_(whole),
      placer_(out, {}, first) {
  connection_->Introduce(context_);
  thread_ = Thread([this] { status_ = Run(); });
}

GrpcConnection::RangePull::~RangePull() {
  if (!thread_.joinable()) return;
  Cancel();
  thread_.Join();
}

absl::Status GrpcConnection::RangePull::Finish() {
  if (thread_.joinable()) thread_.Join();
  return status_;
}

absl::Status GrpcConnection::RangePull::Run() {
  connection_->AwaitConnection(*channel_);
  const Registration registration(connection_, &GrpcConnection::pulls_, &context_);
  registration.Answered();  // there is something to be had: EndPulls is for those that wait
  StallGuard guard(&context_, connection_->options_.stall);
  const std::unique_ptr<ByteReader> reader(grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(
      channel_.get(), connection_->pull_method_, &context_, request_));
  bool ended = false;
  const absl::Status received = Read(*reader, guard, &ended);
  const bool given_up = !received.ok() && !ended;
  if (given_up) context_.TryCancel();
  const grpc::Status finished = reader->Finish();
  if (registration.cancelled())
    return absl::CancelledError("the pull was cancelled: there is an order to follow");
  // Cancel is of use only after another part has failed, whose status is the one that counts.
  const bool ours = given_up && finished.error_code() == grpc::StatusCode::CANCELLED && !guard.stalled();
  if (!finished.ok() && !ours) return connection_->Translate(finished, guard.stalled());
  return received;
}

absl::Status GrpcConnection::RangePull::Read(ByteReader& reader, StallGuard& guard, bool* ended) {
  ATOLL_ASSIGN_OR_RETURN(const v1::PullHeader header, ReadPullHeader(reader, &wire_bytes_, ended));
  guard.Progress(connection_->options_.stall);
  const uint64_t first = request_.range().first_byte();
  const bool same = header.outcome() == v1::PullHeader::PARAMETERS && Epoch(header.epoch()) == whole_.epoch &&
                    Version(header.version()) == whole_.version &&
                    header.has_delta_base() == whole_.delta_base.has_value() &&
                    header.payload_bytes() == whole_.payload_bytes && header.first_byte() == first &&
                    header.end_byte() == first + placer_.expected_bytes();
  if (!same) {
    return absl::UnavailableError(
        absl::StrFormat("version %d was replaced while parts of it were pulled; pulling the newer one",
                        whole_.version.value()));
  }
  return ReadPullChunks(reader, placer_, guard, connection_->options_.stall, &wire_bytes_);
}

}  // namespace atl

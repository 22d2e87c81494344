#include "client/rpc/range_pull.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "atoll/v1/coordinator.grpc.pb.h"
#include "client/rpc/convert.h"
#include "client/rpc/pull_reading.h"
#include "common/status.h"
#include "common/trace_context.h"
#include "protos/wire/pull.h"

namespace atl {
namespace {

v1::PullRequest RequestFor(const MemberRef& member, PullRequest pull_request, const PulledVersion& whole,
                           uint64_t first, uint64_t end) {
  pull_request.progress = nullptr;
  v1::PullRequest request = PullRequestToProto(member, pull_request);
  *request.mutable_range() = PullPartToProto({.version = whole.version,
                                              .delta_base = whole.delta_base,
                                              .first_byte = first,
                                              .end_byte = end < whole.payload_bytes ? end : 0});
  return request;
}

}  // namespace

RangePull::RangePull(const Call& call, std::shared_ptr<grpc::Channel> channel, const MemberRef& member,
                     const PullRequest& pull_request, const PulledVersion& whole, uint64_t first,
                     std::span<std::byte> out)
    : call_(call),
      channel_(std::move(channel)),
      request_(RequestFor(member, pull_request, whole, first, first + out.size())),
      whole_(whole),
      placer_(out, {}, first) {
  call_.setup->Introduce(context_);
  thread_ = Thread([this] { status_ = Run(); });
}

RangePull::~RangePull() {
  if (!thread_.joinable()) return;
  Cancel();
  thread_.Join();
}

absl::Status RangePull::Finish() {
  if (thread_.joinable()) thread_.Join();
  return status_;
}

absl::Status RangePull::Run() {
  call_.setup->AwaitConnection(*channel_, *call_.calls);
  const CallSet::Registration registration(call_.calls, &context_);
  registration.Answered();  // there is something to be had: EndPulls is for those that wait
  StallGuard guard(&context_, call_.setup->options().stall);
  const std::unique_ptr<PullReader> reader(grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(
      channel_.get(), *call_.method, &context_, request_));
  bool ended = false;
  const absl::Status received = Read(*reader, guard, &ended);
  const bool given_up = !received.ok() && !ended;
  if (given_up) context_.TryCancel();
  const grpc::Status finished = reader->Finish();
  if (registration.cancelled())
    return absl::CancelledError("the pull was cancelled: there is a command to follow");
  // Cancel is of use only after another part has failed, whose status is the one that counts.
  const bool ours = given_up && finished.error_code() == grpc::StatusCode::CANCELLED && !guard.stalled();
  if (!finished.ok() && !ours) return call_.setup->Translate(finished, guard.stalled());
  return received;
}

absl::Status RangePull::Read(PullReader& reader, StallGuard& guard, bool* ended) {
  ATOLL_ASSIGN_OR_RETURN(const v1::PullHeader header, ReadPullHeader(reader, &wire_bytes_, ended));
  guard.Progress(call_.setup->options().stall);
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
  return ReadPullChunks(reader, placer_, guard, call_.setup->options().stall, &wire_bytes_);
}

}  // namespace atl

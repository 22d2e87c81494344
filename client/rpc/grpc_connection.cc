#include "client/rpc/grpc_connection.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "atoll/version.h"
#include "client/rpc/call_status.h"
#include "client/rpc/convert.h"
#include "common/status.h"
#include "protos/wire/confirmation.h"
#include "protos/wire/heartbeat.h"
#include "protos/wire/join.h"
#include "protos/wire/push.h"
#include "protos/wire/request_limits.h"
#include "protos/wire/run_state.h"

namespace atl {
namespace {

absl::Status Cancelled() { return absl::CancelledError("the call was cancelled: the worker is to stop"); }

}  // namespace

GrpcConnection::GrpcConnection(GrpcConnectionOptions options, const std::shared_ptr<grpc::Channel>& channel,
                               const Clock* clock)
    : setup_(std::move(options)),
      channel_(channel),
      stub_(v1::Coordinator::NewStub(channel)),
      push_(&setup_, channel),
      pull_(&setup_, channel, clock),
      leave_within_(setup_.options().leave_deadline) {}

template <typename Call>
absl::Status GrpcConnection::CallWithin(Duration deadline, Call call, CallSet* calls) {
  if (calls == nullptr) calls = &calls_;
  setup_.AwaitConnection(*channel_, calls_);
  if (calls_.cancelled()) return Cancelled();
  grpc::ClientContext context;
  setup_.Begin(context, deadline);
  const CallSet::Registration registration(calls, &context);
  const grpc::Status status = call(context);
  if (status.ok()) return absl::OkStatus();
  if (registration.cancelled()) return Cancelled();
  return setup_.Translate(status);
}

grpc::Status GrpcConnection::FinishJoin(grpc::ClientContext& context, const v1::JoinRequest& request,
                                        v1::JoinReply& reply) {
  grpc::CompletionQueue queue;
  grpc::Status status;
  const auto reader = stub_->AsyncJoin(&context, request, &queue);
  reader->Finish(&reply, &status, nullptr);
  std::optional<MonoTime> ends;
  void* tag = nullptr;
  bool ok = false;
  // Without the answer no goodbye is possible, and the run would wait a lease for this worker.
  while (queue.AsyncNext(&tag, &ok, std::chrono::system_clock::now() + std::chrono::milliseconds(20)) ==
         grpc::CompletionQueue::TIMEOUT) {
    const MonoTime now = SteadyNow();
    if (!ends.has_value() && calls_.cancelled()) ends = now + LeaveDeadline();
    if (ends.has_value() && now >= *ends) joins_.Cancel();
  }
  return status;
}

absl::StatusOr<JoinedRun> GrpcConnection::Join(const JoinCall& call) {
  v1::JoinReply reply;
  JoinCall sent = call;
  sent.device.software_version = std::string(kVersion);
  v1::JoinRequest request = JoinCallToProto(sent);
  // The hash is enough; only a rejection says less.
  if (request.ByteSizeLong() > kMaxUnaryBytes && !request.manifest_hash().empty()) request.clear_manifest();
  ATOLL_RETURN_IF_ERROR(CallWithin(
      setup_.options().unary_deadline,
      [&](grpc::ClientContext& context) { return FinishJoin(context, request, reply); },
      call.BecomesMember() ? &joins_ : &calls_));
  return JoinedRunFromProto(reply, call);
}

absl::StatusOr<HeartbeatReply> GrpcConnection::Heartbeat(const MemberRef& member, const HeartbeatCall& call) {
  v1::HeartbeatReply reply;
  HeartbeatCall sent = call;
  if (!setup_.options().device.device.empty()) {
    sent.device = setup_.options().device;
    sent.device->software_version = std::string(kVersion);
  }
  ATOLL_RETURN_IF_ERROR(CallWithin(setup_.options().unary_deadline, [&](grpc::ClientContext& context) {
    return stub_->Heartbeat(&context, HeartbeatCallToProto(member, sent), &reply);
  }));
  return HeartbeatReplyFromProto(reply);
}

absl::StatusOr<PushStatusReply> GrpcConnection::GetPushStatus(const MemberRef& member, const PushKey& key) {
  v1::GetPushStatusReply reply;
  ATOLL_RETURN_IF_ERROR(CallWithin(setup_.options().unary_deadline, [&](grpc::ClientContext& context) {
    return stub_->GetPushStatus(&context, PushStatusCallToProto(member, key), &reply);
  }));
  return PushStatusReplyFromProto(reply);
}

absl::Status GrpcConnection::Leave(const MemberRef& member, const std::string& reason) {
  v1::LeaveRequest request;
  *request.mutable_worker() = MemberRefToProto(member);
  request.set_reason(reason);
  while (true) {
    grpc::ClientContext context;
    const CallSet::Registration registration(&leaves_, &context);
    // Read after the registration: CancelCalls then changes the deadline, or ends the call.
    const Duration within = LeaveDeadline();
    setup_.Begin(context, within);
    v1::LeaveReply reply;
    const grpc::Status status = stub_->Leave(&context, request, &reply);
    // It may have begun when the worker was told to stop, just before the time for it became shorter.
    if (!status.ok() && registration.cancelled() && LeaveDeadline() < within) continue;
    if (!status.ok() && registration.cancelled()) return Cancelled();
    // Not CallSetup::Translate: a worker without time does not look for the fault of the connection.
    if (calls_.cancelled()) return StatusOfCall(status, setup_.options().address);
    return setup_.Translate(status);
  }
}

absl::StatusOr<ConfirmationPage> GrpcConnection::GetConfirmations(const MemberRef& member,
                                                                  const ConfirmationQuery& query,
                                                                  Duration timeout) {
  // No AwaitConnection: the call may not last longer than its timeout.
  grpc::ClientContext context;
  const Duration longest = setup_.options().unary_deadline;
  setup_.Begin(context, timeout > Duration(0) ? std::min(timeout, longest) : longest);
  v1::ConfirmationPage reply;
  const CallSet::Registration registration(&calls_, &context);
  const grpc::Status status =
      stub_->GetConfirmations(&context, ConfirmationQueryToProto(member, query), &reply);
  if (!status.ok() && registration.cancelled()) return Cancelled();
  // Not CallSetup::Translate, which may look at the connection for some seconds.
  if (!status.ok()) return StatusOfCall(status, setup_.options().address);
  return ConfirmationPageFromProto(reply);
}

absl::Status GrpcConnection::SeedParameters(const MemberRef& member, const Manifest& manifest,
                                            std::span<const SeedFragment> fragments) {
  return push_.Seed(member, manifest, fragments);
}

absl::StatusOr<PulledVersion> GrpcConnection::Pull(const MemberRef& member, const PullRequest& pull_request,
                                                   std::span<std::byte> payload) {
  return pull_.Pull(member, pull_request, payload);
}

absl::StatusOr<PushReceipt> GrpcConnection::Push(const MemberRef& member, const PushHeader& push_header,
                                                 std::span<const std::byte> payload, uint64_t from) {
  return push_.Push(member, push_header, payload, from);
}

void GrpcConnection::CancelPulls() {
  pull_.Cancel();
  push_.PrepareToStop();
}

void GrpcConnection::EndPulls() { pull_.EndWaiting(); }

void GrpcConnection::CancelPushes() { push_.Cancel(); }

Duration GrpcConnection::LeaveDeadline() {
  const MutexLock lock(&mutex_);
  return leave_within_;
}

void GrpcConnection::CancelCalls(Duration leave_within) {
  {
    const MutexLock lock(&mutex_);
    leave_within_ = std::min(leave_within_, leave_within);
  }
  calls_.Cancel();
  if (leave_within < setup_.options().leave_deadline) leaves_.EndWaiting();
}

}  // namespace atl

#include "worker/client/grpc_connection.h"

#include <algorithm>
#include <utility>

#include "atoll/version.h"
#include "protos/wire/confirmation.h"
#include "protos/wire/heartbeat.h"
#include "protos/wire/join.h"
#include "protos/wire/push.h"
#include "protos/wire/run_state.h"
#include "worker/client/call_status.h"
#include "worker/client/convert.h"

namespace atl {

GrpcConnection::GrpcConnection(GrpcConnectionOptions options, const std::shared_ptr<grpc::Channel>& channel,
                               const Clock* clock)
    : setup_(std::move(options)),
      channel_(channel),
      stub_(v1::Coordinator::NewStub(channel)),
      push_(&setup_, channel),
      pull_(&setup_, channel, clock) {}

absl::StatusOr<JoinedRun> GrpcConnection::Join(const JoinCall& call) {
  setup_.AwaitConnection(*channel_);
  grpc::ClientContext context;
  setup_.Begin(context, setup_.options().unary_deadline);
  v1::JoinReply reply;
  JoinCall sent = call;
  sent.device.software_version = std::string(kVersion);
  const grpc::Status status = stub_->Join(&context, JoinCallToProto(sent), &reply);
  if (!status.ok()) return setup_.Translate(status);
  return JoinedRunFromProto(reply, call);
}

absl::StatusOr<HeartbeatReply> GrpcConnection::Heartbeat(const MemberRef& member, const HeartbeatCall& call) {
  setup_.AwaitConnection(*channel_);
  grpc::ClientContext context;
  setup_.Begin(context, setup_.options().unary_deadline);
  v1::HeartbeatReply reply;
  HeartbeatCall sent = call;
  if (!setup_.options().device.device.empty()) {
    sent.device = setup_.options().device;
    sent.device->software_version = std::string(kVersion);
  }
  const grpc::Status status = stub_->Heartbeat(&context, HeartbeatCallToProto(member, sent), &reply);
  if (!status.ok()) return setup_.Translate(status);
  return HeartbeatReplyFromProto(reply);
}

absl::StatusOr<PushStatusReply> GrpcConnection::GetPushStatus(const MemberRef& member, const PushKey& key) {
  setup_.AwaitConnection(*channel_);
  grpc::ClientContext context;
  setup_.Begin(context, setup_.options().unary_deadline);
  v1::GetPushStatusReply reply;
  const grpc::Status status = stub_->GetPushStatus(&context, PushStatusCallToProto(member, key), &reply);
  if (!status.ok()) return setup_.Translate(status);
  return PushStatusReplyFromProto(reply);
}

absl::Status GrpcConnection::Leave(const MemberRef& member, const std::string& reason) {
  grpc::ClientContext context;
  setup_.Begin(context, setup_.options().leave_deadline);
  v1::LeaveRequest request;
  *request.mutable_worker() = MemberRefToProto(member);
  request.set_reason(reason);
  v1::LeaveReply reply;
  return setup_.Translate(stub_->Leave(&context, request, &reply));
}

absl::StatusOr<ConfirmationPage> GrpcConnection::GetConfirmations(const MemberRef& member,
                                                                  const ConfirmationQuery& query,
                                                                  Duration timeout) {
  // No AwaitConnection: the call may not last longer than its timeout.
  grpc::ClientContext context;
  const Duration longest = setup_.options().unary_deadline;
  setup_.Begin(context, timeout > Duration(0) ? std::min(timeout, longest) : longest);
  v1::ConfirmationPage reply;
  const grpc::Status status =
      stub_->GetConfirmations(&context, ConfirmationQueryToProto(member, query), &reply);
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

void GrpcConnection::CancelPulls() { pull_.Cancel(); }

void GrpcConnection::EndPulls() { pull_.EndWaiting(); }

void GrpcConnection::CancelPushes() { push_.Cancel(); }

}  // namespace atl

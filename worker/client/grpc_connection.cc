#include "worker/client/grpc_connection.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "protos/wire/trace.h"
#include "worker/client/call_status.h"
#include "worker/client/convert.h"
#include "worker/sync/rejection.h"

namespace atl {
namespace {

constexpr char kPushMethod[] = "/atoll.v1.Coordinator/Push";
constexpr char kPullMethod[] = "/atoll.v1.Coordinator/Pull";

}  // namespace

GrpcConnection::GrpcConnection(GrpcConnectionOptions options, const std::shared_ptr<grpc::Channel>& channel,
                               const Clock* clock)
    : options_(std::move(options)),
      clock_(clock),
      channel_(channel),
      stub_(v1::Coordinator::NewStub(channel)),
      push_method_(kPushMethod, grpc::internal::RpcMethod::CLIENT_STREAMING, channel),
      pull_method_(kPullMethod, grpc::internal::RpcMethod::SERVER_STREAMING, channel) {}

void GrpcConnection::AwaitConnection(grpc::Channel& channel) const {
  // A channel without calls is polled every five seconds only (GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS),
  // and a call on a channel that is not connected fails at once: without this wait, nobody would notice a
  // connection being made.
  channel.WaitForConnected(std::chrono::system_clock::now() +
                           std::chrono::duration_cast<std::chrono::milliseconds>(options_.connect_wait));
}

void GrpcConnection::Introduce(grpc::ClientContext& context) const {
  if (options_.security != nullptr) options_.security->Authorize(context);
  SendTrace(context);
}

void GrpcConnection::Begin(grpc::ClientContext& context, Duration deadline) const {
  // gRPC turns it into a duration at once, so a jump of the wall clock later does not matter.
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::milliseconds>(deadline));
  Introduce(context);
}

absl::Status GrpcConnection::Translate(const grpc::Status& status) const {
  const bool no_answer = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                         status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  const absl::Status translated = StatusOfCall(status, options_.address);
  if (!no_answer || !status.error_details().empty()) return translated;
  ProbeFinding why;
  if (options_.security != nullptr) {
    why = options_.security->LookAtConnection(options_.address, status.error_message());
  }
  if (why.text.empty()) why.text = std::string(translated.message());
  const absl::Status failed(translated.code(), absl::StrFormat("no answer from the coordinator at %s: %s",
                                                               options_.address, why.text));
  return why.looks_permanent || LooksPermanent(translated) ? MarkPermanent(failed) : failed;
}

absl::Status GrpcConnection::Translate(const grpc::Status& status, bool stalled) const {
  if (status.ok() || !stalled) return Translate(status);
  return absl::UnavailableError(absl::StrFormat(
      "the transfer with the coordinator at %s stood still and was given up", options_.address));
}

absl::StatusOr<JoinInfo> GrpcConnection::Join(const JoinParameters& parameters) {
  AwaitConnection();
  grpc::ClientContext context;
  Begin(context, options_.unary_deadline);
  v1::JoinReply reply;
  const grpc::Status status = stub_->Join(&context, JoinRequestToProto(parameters), &reply);
  if (!status.ok()) return Translate(status);
  return JoinInfoFromProto(reply, parameters);
}

absl::StatusOr<HeartbeatReply> GrpcConnection::Heartbeat(const MemberRef& member,
                                                         const HeartbeatReport& heartbeat_report) {
  AwaitConnection();
  grpc::ClientContext context;
  Begin(context, options_.unary_deadline);
  v1::HeartbeatReply reply;
  const grpc::Status status =
      stub_->Heartbeat(&context, HeartbeatToProto(member, heartbeat_report, options_.device), &reply);
  if (!status.ok()) return Translate(status);
  return HeartbeatReplyFromProto(reply);
}

absl::StatusOr<PushStatus> GrpcConnection::GetPushStatus(const MemberRef& member, const PushKey& key) {
  AwaitConnection();
  grpc::ClientContext context;
  Begin(context, options_.unary_deadline);
  v1::GetPushStatusReply reply;
  const grpc::Status status = stub_->GetPushStatus(&context, PushStatusRequestToProto(member, key), &reply);
  if (!status.ok()) return Translate(status);
  return PushStatusFromProto(reply);
}

absl::Status GrpcConnection::Leave(const MemberRef& member, const std::string& reason) {
  grpc::ClientContext context;
  Begin(context, options_.leave_deadline);
  v1::LeaveRequest request;
  *request.mutable_worker() = WorkerRefToProto(member);
  request.set_reason(reason);
  v1::LeaveReply reply;
  return Translate(stub_->Leave(&context, request, &reply));
}

absl::StatusOr<ShownConfirmations> GrpcConnection::GetConfirmations(const MemberRef& member,
                                                                    const ConfirmationsRequest& query) {
  // No AwaitConnection: the call may not last longer than its timeout.
  grpc::ClientContext context;
  const Duration longest = options_.unary_deadline;
  Begin(context, query.timeout > Duration(0) ? std::min(query.timeout, longest) : longest);
  v1::ConfirmationPage reply;
  const grpc::Status status =
      stub_->GetConfirmations(&context, ConfirmationsRequestToProto(member, query), &reply);
  // Not Translate, which may look at the connection for some seconds.
  if (!status.ok()) return StatusOfCall(status, options_.address);
  return ShownConfirmationsFromProto(reply);
}

void GrpcConnection::Cancel(Calls GrpcConnection::*calls) {
  const MutexLock lock(&mutex_);
  (this->*calls).cancelled = true;
  for (grpc::ClientContext* context : (this->*calls).contexts) context->TryCancel();
}

void GrpcConnection::CancelPulls() { Cancel(&GrpcConnection::pulls_); }

void GrpcConnection::EndPulls() {
  const MutexLock lock(&mutex_);
  for (grpc::ClientContext* context : pulls_.waiting) {
    pulls_.ended.insert(context);
    context->TryCancel();
  }
}

void GrpcConnection::CancelPushes() { Cancel(&GrpcConnection::pushes_); }

}  // namespace atl

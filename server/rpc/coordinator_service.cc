#include "server/rpc/coordinator_service.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "protos/wire/confirmation.h"
#include "protos/wire/field_check.h"
#include "protos/wire/heartbeat.h"
#include "protos/wire/join.h"
#include "protos/wire/push.h"
#include "protos/wire/request_limits.h"
#include "protos/wire/run_state.h"
#include "server/rpc/admission.h"
#include "server/rpc/peer.h"
#include "server/rpc/pull_stream.h"
#include "server/rpc/push_stream.h"
#include "server/rpc/seed_stream.h"
#include "server/rpc/unary.h"
#include "server/rpc/watch_stream.h"

namespace atl {
namespace {

/// As many requests as may wait must not be more than the coordinator can hold.
absl::Status CheckSize(const google::protobuf::Message& request) {
  if (request.ByteSizeLong() <= kMaxUnaryBytes) return absl::OkStatus();
  const auto* join = dynamic_cast<const v1::JoinRequest*>(&request);
  if (join != nullptr && join->has_manifest()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("manifest: %d tensors in %d bytes make a Join of %d bytes; at most %d are allowed. "
                        "Leave manifest out "
                        "and give manifest_hash, the hash of the same manifest",
                        join->manifest().tensors_size(), join->manifest().ByteSizeLong(),
                        request.ByteSizeLong(), kMaxUnaryBytes));
  }
  return absl::InvalidArgumentError(absl::StrFormat("a request of %d bytes; at most %d are allowed",
                                                    request.ByteSizeLong(), kMaxUnaryBytes));
}

}  // namespace

template <typename Request, typename Reply, typename Handle>
grpc::ServerUnaryReactor* CoordinatorService::Answer(grpc::CallbackServerContext* context,
                                                     const Request* request, Reply* reply, Handle handle) {
  absl::Status admitted = AdmitToData(call_, *context, *request);
  if (admitted.ok()) admitted = CheckSize(*request);
  return RunUnary(context, call_, admitted, call_.calls, request, reply, std::move(handle));
}

grpc::ServerUnaryReactor* CoordinatorService::Join(grpc::CallbackServerContext* context,
                                                   const v1::JoinRequest* request, v1::JoinReply* reply) {
  return Answer(context, request, reply,
                [this, context](const v1::JoinRequest& in, v1::JoinReply* out) -> absl::Status {
                  ATOLL_ASSIGN_OR_RETURN(JoinCall join, JoinCallFromProto(in));
                  join.address = PeerHost(context->peer());
                  ATOLL_ASSIGN_OR_RETURN(const JoinReply joined, call_.coordinator->Join(join));
                  Saw(joined.fragments);
                  return JoinReplyToProto(joined, out);
                });
}

grpc::ServerUnaryReactor* CoordinatorService::Heartbeat(grpc::CallbackServerContext* context,
                                                        const v1::HeartbeatRequest* request,
                                                        v1::HeartbeatReply* reply) {
  const MonoTime arrived = call_.clock->Now();
  return Answer(context, request, reply,
                [this, arrived](const v1::HeartbeatRequest& in, v1::HeartbeatReply* out) {
                  const absl::Status answered = AnswerHeartbeat(in, out);
                  if (call_.on_heartbeat) call_.on_heartbeat(ToSeconds(call_.clock->Now() - arrived));
                  return answered;
                });
}

absl::Status CoordinatorService::AnswerHeartbeat(const v1::HeartbeatRequest& request,
                                                 v1::HeartbeatReply* reply) {
  ATOLL_ASSIGN_OR_RETURN(const MemberRef caller, MemberRefFromProto(request.worker()));
  ATOLL_ASSIGN_OR_RETURN(const HeartbeatCall beat, HeartbeatCallFromProto(request));
  ATOLL_ASSIGN_OR_RETURN(const HeartbeatReply result, call_.coordinator->Heartbeat(caller, beat));
  Saw(result.fragments);
  *reply = HeartbeatReplyToProto(result);
  return absl::OkStatus();
}

grpc::ServerReadReactor<v1::SeedChunk>* CoordinatorService::SeedParameters(
    grpc::CallbackServerContext* context, v1::SeedReply* reply) {
  return StartSeedStream(call_, context, reply);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* CoordinatorService::Pull(grpc::CallbackServerContext* context,
                                                                     const grpc::ByteBuffer* request) {
  return StartPullStream(call_, context, request);
}

grpc::ServerReadReactor<grpc::ByteBuffer>* CoordinatorService::Push(grpc::CallbackServerContext* context,
                                                                    grpc::ByteBuffer* reply) {
  return StartPushStream(call_, context, reply);
}

grpc::ServerUnaryReactor* CoordinatorService::GetPushStatus(grpc::CallbackServerContext* context,
                                                            const v1::GetPushStatusRequest* request,
                                                            v1::GetPushStatusReply* reply) {
  return Answer(context, request, reply,
                [this](const v1::GetPushStatusRequest& in, v1::GetPushStatusReply* out) -> absl::Status {
                  ATOLL_ASSIGN_OR_RETURN(const MemberRef caller, MemberRefFromProto(in.worker()));
                  ATOLL_ASSIGN_OR_RETURN(
                      const PushStatusReply result,
                      call_.coordinator->GetPushStatus(caller, PushKeyFromProto(in.push())));
                  *out = PushStatusReplyToProto(result);
                  return absl::OkStatus();
                });
}

grpc::ServerWriteReactor<v1::RunEvent>* CoordinatorService::WatchRun(grpc::CallbackServerContext* context,
                                                                     const v1::WatchRunRequest* request) {
  return StartWatchStream(call_, context, request);
}

grpc::ServerUnaryReactor* CoordinatorService::Leave(grpc::CallbackServerContext* context,
                                                    const v1::LeaveRequest* request, v1::LeaveReply* reply) {
  return Answer(context, request, reply, [this](const v1::LeaveRequest& in, v1::LeaveReply*) -> absl::Status {
    ATOLL_ASSIGN_OR_RETURN(const MemberRef caller, MemberRefFromProto(in.worker()));
    return call_.coordinator->Leave(caller, ShownText(in.reason(), kMaxLeaveReasonBytes));
  });
}

grpc::ServerUnaryReactor* CoordinatorService::GetConfirmations(grpc::CallbackServerContext* context,
                                                               const v1::GetConfirmationsRequest* request,
                                                               v1::ConfirmationPage* reply) {
  return Answer(context, request, reply,
                [this](const v1::GetConfirmationsRequest& in, v1::ConfirmationPage* out) -> absl::Status {
                  ATOLL_ASSIGN_OR_RETURN(const ConfirmationPage page,
                                         call_.coordinator->GetConfirmations(ConfirmationQueryFromProto(in)));
                  *out = ConfirmationPageToProto(page);
                  return absl::OkStatus();
                });
}

void CoordinatorService::Saw(const std::vector<FragmentHead>& fragments) {
  for (const FragmentHead& fragment : fragments) call_.heads->Saw(fragment.id, fragment.version);
}

}  // namespace atl

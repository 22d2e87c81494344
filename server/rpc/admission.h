#ifndef ATOLL_SERVER_RPC_ADMISSION_H_
#define ATOLL_SERVER_RPC_ADMISSION_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "atoll/v1/admin.pb.h"
#include "atoll/v1/coordinator.pb.h"
#include "grpcpp/server_context.h"
#include "server/access/access_policy.h"
#include "server/access/permissions.h"
#include "server/admin/admin_control.h"
#include "server/rpc/call_context.h"

// Who calls, and whether it may: asked for every call before anything else is done for it. Unauthenticated:
// nobody knows who it is; PermissionDenied: it is known, and may not.

namespace atl {

/// What the connection and the call's metadata brought.
Presented PresentedBy(const grpc::CallbackServerContext& context);

absl::StatusOr<Identity> IdentifyCaller(const CallContext& call, const grpc::CallbackServerContext& context);

// The data port: the names in each request.
absl::Status CheckRequest(const Identity& who, const v1::JoinRequest& request);
absl::Status CheckRequest(const Identity& who, const v1::HeartbeatRequest& request);
absl::Status CheckRequest(const Identity& who, const v1::GetPushStatusRequest& request);
absl::Status CheckRequest(const Identity& who, const v1::LeaveRequest& request);
absl::Status CheckRequest(const Identity& who, const v1::GetConfirmationsRequest& request);

/// The admin port: whose credentials a request takes. An operator's, unless it is among those that only look.
Role NeededFor(const google::protobuf::Message& request);

template <typename Request>
absl::Status AdmitToData(const CallContext& call, const grpc::CallbackServerContext& context,
                         const Request& request) {
  const auto who = IdentifyCaller(call, context);
  return who.ok() ? CheckRequest(*who, request) : who.status();
}

absl::Status AdmitToAdmin(const CallContext& call, const grpc::CallbackServerContext& context,
                          const google::protobuf::Message& request);
/// For the calls about tokens.
absl::Status AdmitToTokens(const CallContext& call, const grpc::CallbackServerContext& context);

/// For the audit line: who was proven, and how; else who it says it is, the metadata `atoll-user` without
/// anything that is not printable ASCII; and the peer's address.
AdminCaller CallerOf(const CallContext& call, const grpc::CallbackServerContext& context);

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_ADMISSION_H_

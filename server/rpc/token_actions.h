#ifndef ATOLL_SERVER_RPC_TOKEN_ACTIONS_H_
#define ATOLL_SERVER_RPC_TOKEN_ACTIONS_H_

#include "absl/status/status.h"
#include "atoll/v1/admin.pb.h"
#include "server/admin/admin_control.h"
#include "server/rpc/call_context.h"

namespace atl {

/// What operators do with tokens, from message to message. UNIMPLEMENTED when the coordinator keeps none.
/// Thread-safe.
class TokenActions {
 public:
  /// `call` outlives it.
  explicit TokenActions(const CallContext& call) : call_(call) {}

  absl::Status Create(const AdminCaller& caller, const v1::CreateTokenRequest& in, v1::CreateTokenReply* out);
  absl::Status List(const v1::ListTokensRequest&, v1::ListTokensReply* out);
  absl::Status Revoke(const AdminCaller& caller, const v1::RevokeTokenRequest& in, v1::TokenInfo* out);

 private:
  const CallContext& call_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_TOKEN_ACTIONS_H_

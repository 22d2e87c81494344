#include "server/rpc/token_actions.h"

#include <cmath>
#include <optional>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "server/access/token_store.h"

namespace atl {
namespace {

constexpr double kLongestLifetime = 100.0 * 365 * 86400;

void EncodeToken(const TokenRecord& token, v1::TokenInfo* out) {
  out->set_id(token.id);
  out->set_role(std::string(RoleName(token.role)));
  out->set_name(token.name);
  out->set_created_unix_nanos(token.created_unix_ns);
  out->set_expires_unix_nanos(token.expires_unix_ns);
  out->set_revoked_unix_nanos(token.revoked_unix_ns);
  out->set_created_by(token.created_by);
}

absl::StatusOr<TokenRequest> DecodeRequest(const v1::CreateTokenRequest& in, const AdminCaller& caller) {
  const std::optional<Role> role = ParseRole(in.role());
  if (!role) return absl::InvalidArgumentError("role: is none; one of observer, worker, admin");
  TokenRequest request{
      .role = *role, .name = in.name(), .lifetime = std::nullopt, .created_by = caller.proven};
  const double lifetime = in.lifetime_s();
  if (!(lifetime >= 0 && lifetime <= kLongestLifetime)) {
    return absl::InvalidArgumentError("lifetime_s: is no number of seconds from 0 to a hundred years");
  }
  if (lifetime > 0) request.lifetime = Seconds(lifetime);
  return request;
}

absl::Status Unserved() { return absl::UnimplementedError("this coordinator keeps no tokens"); }

std::string Whose(const TokenRecord& token) {
  return absl::StrFormat("token %s of %s %s", token.id, std::string(RoleName(token.role)),
                         token.name.empty() ? "(any)" : token.name);
}

}  // namespace

absl::Status TokenActions::Create(const AdminCaller& caller, const v1::CreateTokenRequest& in,
                                  v1::CreateTokenReply* out) {
  if (call_.tokens == nullptr) return Unserved();
  absl::StatusOr<NewToken> made = absl::InternalError("not tried");
  const auto token_request = DecodeRequest(in, caller);
  if (token_request.ok()) {
    made = call_.tokens->Create(*token_request);
  } else {
    made = token_request.status();
  }
  call_.coordinator->admin().Audit(caller, "token_create",
                                   absl::StrFormat("create a token of %s '%s'", in.role(), in.name()),
                                   made.status(), made.ok() ? "made " + Whose(made->record) : "");
  ATOLL_RETURN_IF_ERROR(made.status());
  out->set_token(made->text);
  out->set_warning(call_.token_warning);
  EncodeToken(made->record, out->mutable_info());
  return absl::OkStatus();
}

absl::Status TokenActions::List(const v1::ListTokensRequest&, v1::ListTokensReply* out) {
  if (call_.tokens == nullptr) return Unserved();
  for (const TokenRecord& token : call_.tokens->List()) {
    EncodeToken(token, out->add_tokens());
  }
  return absl::OkStatus();
}

absl::Status TokenActions::Revoke(const AdminCaller& caller, const v1::RevokeTokenRequest& in,
                                  v1::TokenInfo* out) {
  if (call_.tokens == nullptr) return Unserved();
  const auto revoked = call_.tokens->Revoke(in.id());
  call_.coordinator->admin().Audit(caller, "token_revoke", absl::StrFormat("revoke token '%s'", in.id()),
                                   revoked.status(), revoked.ok() ? "revoked " + Whose(*revoked) : "");
  ATOLL_RETURN_IF_ERROR(revoked.status());
  EncodeToken(*revoked, out);
  return absl::OkStatus();
}

}  // namespace atl

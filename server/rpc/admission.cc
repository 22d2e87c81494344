#include "server/rpc/admission.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "common/status.h"
#include "grpc/grpc_security_constants.h"
#include "grpcpp/security/auth_context.h"
#include "server/rpc/decode_admin.h"
#include "server/rpc/peer.h"

namespace atl {
namespace {

constexpr char kUserKey[] = "atoll-user";
constexpr char kTokenKey[] = "authorization";
constexpr std::string_view kScheme = "Bearer ";
// Of gRPC's peer properties; it has no names for these two in its headers.
constexpr char kDnsProperty[] = "peer_dns";
constexpr char kUriProperty[] = "peer_uri";

std::string Text(const grpc::string_ref& text) { return std::string(text.data(), text.size()); }

/// Without anything that is not printable ASCII.
std::string MetadataText(const grpc::CallbackServerContext& context, const char* key, size_t most) {
  const auto& metadata = context.client_metadata();
  const auto it = metadata.find(key);
  if (it == metadata.end()) return "";
  std::string text(it->second.data(), std::min<size_t>(it->second.size(), most));
  for (char& c : text) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  return text;
}

void AddProperty(const grpc::AuthContext& auth, const char* name, std::vector<std::string>& out) {
  for (const grpc::string_ref& value : auth.FindPropertyValues(name)) out.push_back(Text(value));
}

std::string ReadBearer(const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto it = metadata.find(kTokenKey);
  if (it == metadata.end()) return "";
  const std::string value = Text(it->second);
  // "bearer" in any case, as HTTP has it. Another scheme is none of ours: what it brings is no known token.
  const bool bearer = value.size() > kScheme.size() &&
                      absl::EqualsIgnoreCase(value.substr(0, kScheme.size()),
                                             absl::string_view(kScheme.data(), kScheme.size()));
  return bearer ? value.substr(kScheme.size()) : value;
}

}  // namespace

Presented PresentedBy(const grpc::CallbackServerContext& context) {
  Presented presented;
  presented.peer = PeerAddress(context.peer());
  presented.bearer = ReadBearer(context);
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr || !auth->IsPeerAuthenticated()) return presented;
  AddProperty(*auth, kDnsProperty, presented.subject_names);
  AddProperty(*auth, kUriProperty, presented.subject_names);
  std::vector<std::string> chain;
  AddProperty(*auth, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME, chain);
  if (chain.empty()) AddProperty(*auth, GRPC_X509_PEM_CERT_PROPERTY_NAME, chain);
  if (!chain.empty()) presented.certificates = std::move(chain.front());
  return presented;
}

absl::StatusOr<Identity> IdentifyCaller(const CallContext& call, const grpc::CallbackServerContext& context) {
  if (call.access == nullptr) return Identity{.role = Role::kAdmin, .name = {}, .how = "none"};
  return call.access->Identify(PresentedBy(context));
}

absl::Status CheckRequest(const Identity& who, const v1::JoinRequest& request) {
  return CheckJoin(who, request.worker(), static_cast<WorkerRole>(request.role()));
}
absl::Status CheckRequest(const Identity& who, const v1::HeartbeatRequest& request) {
  return CheckMember(who, request.worker().worker(), MemberAct::kLook);
}
absl::Status CheckRequest(const Identity& who, const v1::GetPushStatusRequest& request) {
  return CheckMember(who, request.worker().worker(), MemberAct::kLook);
}
absl::Status CheckRequest(const Identity& who, const v1::LeaveRequest& request) {
  return CheckMember(who, request.worker().worker(), MemberAct::kLook);
}

absl::Status CheckRequest(const Identity& who, const v1::GetConfirmationsRequest& request) {
  return CheckMember(who, request.worker().worker(), MemberAct::kLook);
}

Role NeededFor(const google::protobuf::Message& request) {
  // A checkpoint's files are read for their checksums: that is work.
  const auto* list = dynamic_cast<const v1::ListCheckpointsRequest*>(&request);
  if (list != nullptr && list->check()) return Role::kAdmin;
  const auto* read = dynamic_cast<const v1::ReadParametersRequest*>(&request);
  if (read != nullptr) return read->has_checkpoint() ? Role::kAdmin : Role::kObserver;
  static const std::array kLooks = {
      v1::GetStatusRequest::descriptor(),         v1::ListWorkersRequest::descriptor(),
      v1::GetMetricsRequest::descriptor(),        v1::ExportMetricsRequest::descriptor(),
      v1::ListConfigsRequest::descriptor(),       v1::GetLauncherRequest::descriptor(),
      v1::ListCheckpointsRequest::descriptor(),   v1::ListRoundsRequest::descriptor(),
      v1::ListConfirmationsRequest::descriptor(),
  };
  const bool looks = std::find(kLooks.begin(), kLooks.end(), request.GetDescriptor()) != kLooks.end();
  return looks ? Role::kObserver : Role::kAdmin;
}

absl::Status AdmitToAdmin(const CallContext& call, const grpc::CallbackServerContext& context,
                          const google::protobuf::Message& request) {
  ATOLL_ASSIGN_OR_RETURN(const Identity who, IdentifyCaller(call, context));
  constexpr std::string_view kSuffix = "Request";
  std::string what = request.GetDescriptor()->name();
  if (what.ends_with(kSuffix)) what.resize(what.size() - kSuffix.size());
  return CheckAdminCall(who, NeededFor(request), what);
}

absl::Status AdmitToTokens(const CallContext& call, const grpc::CallbackServerContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const Identity who, IdentifyCaller(call, context));
  return CheckTokenCall(who);
}

AdminCaller CallerOf(const CallContext& call, const grpc::CallbackServerContext& context) {
  AdminCaller caller{.user = MetadataText(context, kUserKey, kMaxUserBytes),
                     .peer = PeerAddress(context.peer())};
  const auto who = IdentifyCaller(call, context);
  if (!who.ok() || !who->verified) return caller;
  caller.proven = who->name;
  caller.how = who->how;
  return caller;
}

}  // namespace atl

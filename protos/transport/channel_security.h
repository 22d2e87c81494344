#ifndef ATOLL_PROTOS_TRANSPORT_CHANNEL_SECURITY_H_
#define ATOLL_PROTOS_TRANSPORT_CHANNEL_SECURITY_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/tls/live_certificates.h"
#include "common/tls/probe.h"
#include "common/token_source.h"
#include "grpcpp/client_context.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"

namespace atl {

/// What a client was told about who it is and whom it trusts. The flags of the same names.
struct ClientSecurityFlags {
  bool tls = false;  // with this system's CAs; any of the next three turns TLS on, too
  std::string tls_ca;
  std::string tls_cert;
  std::string tls_key;
  std::string tls_server_name;
  std::string token_file;
  bool insecure_token = false;

  bool UsesTls() const { return tls || !tls_ca.empty() || !tls_cert.empty() || !tls_key.empty(); }
};

/// How channels to a coordinator are secured, and calls on them authorised. Certificates and token follow
/// their files. Outlives the channels' calls; thread-safe.
class ChannelSecurity {
 public:
  /// InvalidArgument, NotFound, PermissionDenied: which flag or file, and why. `clock` outlives it.
  static absl::StatusOr<std::shared_ptr<ChannelSecurity>> Create(const ClientSecurityFlags& flags,
                                                                 const Clock* clock, const Logger& log);
  /// Plain text, nobody in particular: for this machine.
  static std::shared_ptr<ChannelSecurity> Plain();

  /// InvalidArgument when a token would travel in plain text to another machine.
  absl::Status CheckTarget(const std::string& address) const;

  std::shared_ptr<grpc::ChannelCredentials> credentials() const { return credentials_; }
  void SetArguments(grpc::ChannelArguments& arguments) const;
  /// Adds the token, when there is one.
  void Authorize(grpc::ClientContext& context) const;

  /// Why nothing comes of connections to this address, when it has to do with certificates; else empty.
  /// `grpc_message` is what gRPC said. Looks at most every few seconds (common/tls/probe.h), else repeats
  /// what it found. `port`: the one that the caller needs.
  std::string WhyNoConnection(const std::string& address, const std::string& grpc_message,
                              CoordinatorPort port = CoordinatorPort::kData) const {
    return LookAtConnection(address, grpc_message, port).text;
  }
  /// The same, and whether waiting can help.
  ProbeFinding LookAtConnection(const std::string& address, const std::string& grpc_message,
                                CoordinatorPort port = CoordinatorPort::kData) const;

  /// What is in force; null without TLS.
  std::shared_ptr<const CertificateSet> certificates() const;
  /// OK, or why the certificate files as they are now cannot be used.
  absl::Status files_outcome() const;
  bool tls() const { return flags_.UsesTls(); }

 private:
  struct Finding {
    MonoTime when;
    ProbeFinding finding;
  };
  ChannelSecurity(ClientSecurityFlags flags, const Clock* clock);
  void MakeCredentials();

  const ClientSecurityFlags flags_;
  const Clock* const clock_;
  std::unique_ptr<LiveCertificates> certificates_;  // null without TLS
  std::unique_ptr<TokenSource> token_;              // null without a token
  std::shared_ptr<grpc::ChannelCredentials> credentials_;
  mutable Mutex mutex_;
  mutable std::map<std::pair<std::string, CoordinatorPort>, Finding> findings_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_PROTOS_TRANSPORT_CHANNEL_SECURITY_H_

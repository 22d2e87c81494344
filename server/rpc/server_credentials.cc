#include "server/rpc/server_credentials.h"

#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_credentials_options.h"

namespace atl {
namespace {

constexpr unsigned kGrpcLooksEverySeconds = 1;

grpc_ssl_client_certificate_request_type RequestType(ClientCertificates wanted) {
  switch (wanted) {
    case ClientCertificates::kNone:
      return GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
    case ClientCertificates::kOptional:
      return GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY;
    case ClientCertificates::kRequired:
      break;
  }
  return GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
}

}  // namespace

std::shared_ptr<grpc::ServerCredentials> ServerCredentialsFor(const RpcSecurity& security) {
  if (security.certificates == nullptr) return grpc::InsecureServerCredentials();
  const LiveCertificates& files = *security.certificates;
  const auto provider = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      files.key_path(), files.certificate_path(), files.roots_path(), kGrpcLooksEverySeconds);
  grpc::experimental::TlsServerCredentialsOptions options(provider);
  options.watch_identity_key_cert_pairs();
  if (!files.roots_path().empty()) options.watch_root_certs();
  options.set_cert_request_type(RequestType(security.client_certificates));
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace atl

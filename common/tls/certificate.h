#ifndef ATOLL_COMMON_TLS_CERTIFICATE_H_
#define ATOLL_COMMON_TLS_CERTIFICATE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"

// X.509 certificates as PEM text (OpenSSL). Errors describe the problem but not the file, which the caller
// knows.

namespace atl {

/// The contents of a certificate.
struct CertificateSummary {
  std::vector<std::string> dns_names;  // subject alternative names
  std::vector<std::string> uris;
  std::vector<std::string> addresses;  // "127.0.0.1", "::1"
  std::string subject;                 // "CN = coordinator"
  std::string issuer;
  WallTime not_before;
  WallTime not_after;
};

/// Which side of a connection shows a certificate.
enum class CertificateUse { kServer, kClient };

/// The first certificate in the text. InvalidArgument: there is none.
absl::StatusOr<CertificateSummary> ReadCertificate(std::string_view pem);

/// Checks that the key matches the first certificate. InvalidArgument if it does not, is not a key, or needs
/// a pass phrase.
absl::Status CheckKeyPair(std::string_view certificate_pem, std::string_view key_pem);

/// Checks that this side may present the first certificate: its extended key usage allows it or is absent.
/// InvalidArgument names the missing usage.
absl::Status CheckUse(std::string_view certificate_pem, CertificateUse use);

/// Number of certificates in the text. InvalidArgument if there is none or one is unreadable.
absl::StatusOr<int> CountCertificates(std::string_view pem);

/// Checks that the first certificate is valid now for a client and chains, through the certificates after it,
/// to one of `roots_pem`. PermissionDenied with the reason otherwise.
absl::Status VerifyClient(std::string_view chain_pem, std::string_view roots_pem);

/// Whether the certificate is valid for this host name or address, as clients check it.
bool CoversHost(std::string_view certificate_pem, const std::string& host);

/// "2026-11-21 14:40 UTC"
std::string UtcMinute(WallTime time);

}  // namespace atl

#endif  // ATOLL_COMMON_TLS_CERTIFICATE_H_

#ifndef ATOLL_COMMON_TLS_CERTIFICATE_H_
#define ATOLL_COMMON_TLS_CERTIFICATE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"

// X.509 certificates as PEM text (OpenSSL). Errors say what is wrong and not where the text came from: the
// caller knows the file.

namespace atl {

/// What a certificate says.
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

/// Whether the key is the first certificate's. InvalidArgument: it is not, or is none, or asks for a pass
/// phrase.
absl::Status CheckKeyPair(std::string_view certificate_pem, std::string_view key_pem);

/// Whether the first certificate may be shown by this side: its extended key usage allows it, or there is
/// none to limit it. InvalidArgument: it may not, with the usage that it lacks.
absl::Status CheckUse(std::string_view certificate_pem, CertificateUse use);

/// How many certificates are in the text. InvalidArgument: none, or one that cannot be read.
absl::StatusOr<int> CountCertificates(std::string_view pem);

/// Whether the first certificate leads, over those behind it, to one of `roots_pem`, now, for a client.
/// PermissionDenied saying why not.
absl::Status VerifyClient(std::string_view chain_pem, std::string_view roots_pem);

/// Whether it is valid for this host name or address, as clients check it.
bool CoversHost(std::string_view certificate_pem, const std::string& host);

/// "2026-11-21 14:40 UTC"
std::string UtcMinute(WallTime time);

}  // namespace atl

#endif  // ATOLL_COMMON_TLS_CERTIFICATE_H_

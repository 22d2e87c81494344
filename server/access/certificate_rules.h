#ifndef ATOLL_SERVER_ACCESS_CERTIFICATE_RULES_H_
#define ATOLL_SERVER_ACCESS_CERTIFICATE_RULES_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/access/access_policy.h"
#include "server/access/san_pattern.h"

namespace atl {

/// Rules for the names in certificates. Patterns are tried in order; the first matching name counts.
struct CertificateRuleOptions {
  std::vector<std::string> admin_sans = {"spiffe://*/admin/{name}"};
  std::vector<std::string> observer_sans = {"spiffe://*/observer/{name}"};
  std::vector<std::string> worker_sans = {"spiffe://*/worker/{name}", "{name}"};
  /// Returns the current CA certificates of operators as PEM; thread-safe. If set, every certificate that
  /// they signed is an operator's, whatever its names, and no other is. If empty, admin_sans identify
  /// operators.
  std::function<std::string()> admin_ca;
};

/// Identifies callers by a certificate that the transport has verified. Thread-safe.
class CertificateRules {
 public:
  /// InvalidArgument names the wrong pattern.
  static absl::StatusOr<std::unique_ptr<CertificateRules>> Create(const CertificateRuleOptions& options);

  /// Unauthenticated, with the names, if they identify nobody.
  absl::StatusOr<Identity> Identify(const Presented& presented) const;

 private:
  CertificateRules() = default;

  std::vector<SanPattern> admins_;
  std::vector<SanPattern> observers_;
  std::vector<SanPattern> workers_;
  std::function<std::string()> admin_ca_;
};

}  // namespace atl

#endif  // ATOLL_SERVER_ACCESS_CERTIFICATE_RULES_H_

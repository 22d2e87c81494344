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

/// What the names in certificates mean. Patterns are tried in their order; the first name that fits counts.
struct CertificateRuleOptions {
  std::vector<std::string> admin_sans = {"spiffe://*/admin/{name}"};
  std::vector<std::string> observer_sans = {"spiffe://*/observer/{name}"};
  std::vector<std::string> worker_sans = {"spiffe://*/worker/{name}", "{name}"};
  /// The certificates that alone make operators, as PEM, now; thread-safe. Set: whoever they signed is an
  /// operator, whatever the names, and nobody else is. Empty: operators are told by admin_sans.
  std::function<std::string()> admin_ca;
};

/// Who somebody is by a certificate that the transport has verified. Thread-safe.
class CertificateRules {
 public:
  /// InvalidArgument naming the pattern.
  static absl::StatusOr<std::unique_ptr<CertificateRules>> Create(const CertificateRuleOptions& options);

  /// Unauthenticated, naming the names, when they mean nobody.
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

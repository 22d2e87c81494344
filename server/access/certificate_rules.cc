#include "server/access/certificate_rules.h"

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "common/tls/certificate.h"
#include "core/membership.h"

namespace atl {
namespace {

absl::StatusOr<std::vector<SanPattern>> ParseAll(const std::vector<std::string>& texts) {
  std::vector<SanPattern> patterns;
  for (const std::string& text : texts) {
    ATOLL_ASSIGN_OR_RETURN(SanPattern pattern, SanPattern::Parse(text));
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

std::optional<std::string> FirstMatch(const std::vector<SanPattern>& patterns,
                                      const std::vector<std::string>& sans) {
  for (const SanPattern& pattern : patterns) {
    for (const std::string& san : sans) {
      if (const auto name = pattern.Match(san)) return name;
    }
  }
  return std::nullopt;
}

Identity Proven(Role role, std::string name) {
  return {.role = role, .name = std::move(name), .how = "certificate", .verified = true};
}

}  // namespace

absl::StatusOr<std::unique_ptr<CertificateRules>> CertificateRules::Create(
    const CertificateRuleOptions& options) {
  std::unique_ptr<CertificateRules> rules(new CertificateRules());
  ATOLL_ASSIGN_OR_RETURN(rules->admins_, ParseAll(options.admin_sans));
  ATOLL_ASSIGN_OR_RETURN(rules->observers_, ParseAll(options.observer_sans));
  ATOLL_ASSIGN_OR_RETURN(rules->workers_, ParseAll(options.worker_sans));
  rules->admin_ca_ = options.admin_ca;
  return rules;
}

absl::StatusOr<Identity> CertificateRules::Identify(const Presented& presented) const {
  const std::vector<std::string>& sans = presented.subject_names;
  const std::optional<std::string> admin = FirstMatch(admins_, sans);
  if (admin_ca_) {
    if (VerifyClient(presented.certificates, admin_ca_()).ok()) {
      const auto facts = ReadCertificate(presented.certificates);
      return Proven(Role::kAdmin, admin.value_or(facts.ok() ? facts->subject : ""));
    }
  } else if (admin) {
    return Proven(Role::kAdmin, *admin);
  }
  if (auto observer = FirstMatch(observers_, sans)) return Proven(Role::kObserver, *std::move(observer));
  auto worker = FirstMatch(workers_, sans);
  if (worker && ValidateWorkerName(*worker).ok()) return Proven(Role::kWorker, *std::move(worker));
  return absl::UnauthenticatedError(absl::StrFormat(
      "the certificate's names (%s) do not identify a caller of this coordinator%s; it expects a name like "
      "%s",
      sans.empty() ? "it has no subject alternative names" : absl::StrJoin(sans, ", "),
      admin && admin_ca_ ? ": an operator's certificate must be signed by --tls-admin-ca, and this one is not"
                         : "",
      workers_.empty() ? "--admin-san or --observer-san say" : workers_.front().text()));
}

}  // namespace atl

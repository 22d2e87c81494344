#include "server/access/policies.h"

#include "absl/strings/str_format.h"
#include "common/status.h"

namespace atl {
namespace {

absl::StatusOr<Identity> ByToken(const TokenStore& tokens, const std::string& text) {
  ATOLL_ASSIGN_OR_RETURN(const TokenRecord token, tokens.Find(text));
  return Identity{.role = token.role, .name = token.name, .how = "token", .verified = true};
}

class OpenPolicy final : public AccessPolicy {
 public:
  explicit OpenPolicy(const TokenStore* tokens) : tokens_(tokens) {}

  absl::StatusOr<Identity> Identify(const Presented& presented) const override {
    if (!presented.bearer.empty()) return ByToken(*tokens_, presented.bearer);
    return Identity{.role = Role::kAdmin, .name = {}, .how = "none", .verified = false};
  }

 private:
  const TokenStore* const tokens_;
};

bool Contradict(const Identity& certificate, const Identity& token) {
  const bool workers = certificate.role == Role::kWorker && token.role == Role::kWorker;
  return workers && !certificate.name.empty() && !token.name.empty() && certificate.name != token.name;
}

class AskingPolicy final : public AccessPolicy {
 public:
  AskingPolicy(const TokenStore* tokens, const CertificateRules* rules) : tokens_(tokens), rules_(rules) {}

  absl::StatusOr<Identity> Identify(const Presented& presented) const override {
    const bool certified = rules_ != nullptr && !presented.certificates.empty();
    if (presented.bearer.empty() && !certified) return Missing();
    if (presented.bearer.empty()) return rules_->Identify(presented);
    ATOLL_ASSIGN_OR_RETURN(Identity token, ByToken(*tokens_, presented.bearer));
    if (!certified) return token;
    // A certificate that names nobody still let the connection in; then the token says who it is.
    const auto certificate = rules_->Identify(presented);
    if (!certificate.ok() || !Contradict(*certificate, token)) {
      if (certificate.ok() && token.name.empty() && certificate->role == token.role) {
        token.name = certificate->name;
      }
      return token;
    }
    return absl::UnauthenticatedError(
        absl::StrFormat("the certificate belongs to worker %s, but the token to worker %s; give both of one "
                        "worker (--tls-cert, --token-file)",
                        certificate->name, token.name));
  }

 private:
  absl::Status Missing() const {
    return absl::UnauthenticatedError(
        rules_ == nullptr
            ? "this coordinator requires a token, but none was sent; get one from its operator (atollctl "
              "tokens create) and give its file with --token-file FILE or ATOLL_TOKEN_FILE"
            : "this coordinator requires authentication, but neither a certificate nor a token was sent; "
              "give --tls-cert and --tls-key, or --token-file FILE (ATOLL_TOKEN_FILE)");
  }

  const TokenStore* const tokens_;
  const CertificateRules* const rules_;
};

}  // namespace

std::unique_ptr<AccessPolicy> MakeOpenPolicy(const TokenStore* tokens) {
  return std::make_unique<OpenPolicy>(tokens);
}

std::unique_ptr<AccessPolicy> MakeAskingPolicy(const TokenStore* tokens, const CertificateRules* rules) {
  return std::make_unique<AskingPolicy>(tokens, rules);
}

}  // namespace atl

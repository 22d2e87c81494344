#ifndef ATOLL_SERVER_ACCESS_POLICIES_H_
#define ATOLL_SERVER_ACCESS_POLICIES_H_

#include <memory>

#include "server/access/access_policy.h"
#include "server/access/certificate_rules.h"
#include "server/access/token_store.h"

namespace atl {

/// A run that asks nobody: for one machine, or a network that is trusted. Who brings nothing may do
/// everything, unverified; a token is still looked at, so that what asks for proof itself (the web page's
/// actions) can have it, and a wrong one is refused. `tokens` outlives it.
std::unique_ptr<AccessPolicy> MakeOpenPolicy(const TokenStore* tokens);

/// A run that asks everybody, by token, by certificate (`rules` not null), or by both:
///   a token says who it is; with a certificate beside it that names another worker it is refused;
///   without a token the certificate says it.
/// Both outlive it.
std::unique_ptr<AccessPolicy> MakeAskingPolicy(const TokenStore* tokens, const CertificateRules* rules);

}  // namespace atl

#endif  // ATOLL_SERVER_ACCESS_POLICIES_H_

#ifndef ATOLL_SERVER_ACCESS_POLICIES_H_
#define ATOLL_SERVER_ACCESS_POLICIES_H_

#include <memory>

#include "server/access/access_policy.h"
#include "server/access/certificate_rules.h"
#include "server/access/token_store.h"

namespace atl {

/// Policy without authentication, for one machine or a trusted network. Callers without credentials may do
/// everything, unverified. A token is still checked, because some calls (the web page's actions) require one,
/// and a wrong token is rejected. `tokens` outlives it.
std::unique_ptr<AccessPolicy> MakeOpenPolicy(const TokenStore* tokens);

/// Policy that authenticates every caller by token, by certificate (`rules` not null), or by both. A token
/// identifies the caller, and is rejected together with a certificate of another worker. Without a token, the
/// certificate identifies the caller. Both outlive it.
std::unique_ptr<AccessPolicy> MakeAskingPolicy(const TokenStore* tokens, const CertificateRules* rules);

}  // namespace atl

#endif  // ATOLL_SERVER_ACCESS_POLICIES_H_

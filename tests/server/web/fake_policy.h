#ifndef ATOLL_TESTS_SERVER_WEB_FAKE_POLICY_H_
#define ATOLL_TESTS_SERVER_WEB_FAKE_POLICY_H_

#include <string>

#include "server/access/access_policy.h"

namespace atl {

/// Knows three tokens: "admin-token", "observer-token" and "worker-token". Who brings none may look, unless
/// it asks everybody.
class FakePolicy final : public AccessPolicy {
 public:
  explicit FakePolicy(bool asks_everybody = false) : asks_everybody_(asks_everybody) {}

  absl::StatusOr<Identity> Identify(const Presented& presented) const override {
    const std::string& bearer = presented.bearer;
    if (bearer == "admin-token") return Identity{Role::kAdmin, "ann", "token", true};
    if (bearer == "observer-token") return Identity{Role::kObserver, "otto", "token", true};
    if (bearer == "worker-token") return Identity{Role::kWorker, "w1", "token", true};
    if (!bearer.empty()) return absl::UnauthenticatedError("this token is not known");
    if (asks_everybody_) return absl::UnauthenticatedError("a token is needed; give --token-file FILE");
    return Identity{Role::kAdmin, "", "none", false};
  }

 private:
  const bool asks_everybody_;
};

}  // namespace atl

#endif  // ATOLL_TESTS_SERVER_WEB_FAKE_POLICY_H_

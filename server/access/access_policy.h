#ifndef ATOLL_SERVER_ACCESS_ACCESS_POLICY_H_
#define ATOLL_SERVER_ACCESS_ACCESS_POLICY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace atl {

/// What a caller may do. An operator may do what an observer may. docs/guides/security.md, "Who may what".
enum class Role : uint8_t {
  kObserver = 1,  // looks: status, metrics, published parameters
  kWorker = 2,    // joins under its own name and contributes
  kAdmin = 3,     // changes the run
};

/// "observer", "worker", "admin": on command lines, in files.
std::string_view RoleName(Role role);
/// nullopt when there is no such role.
std::optional<Role> ParseRole(std::string_view name);

/// Who somebody was shown to be. In a run without certificates and tokens everybody is trusted: `verified` is
/// false, and a name is only what the caller says of itself.
struct Identity {
  Role role = Role::kObserver;
  std::string name;  // a worker's, or an operator's; empty: any (nothing binds it to one)
  std::string how;   // "certificate", "token", "none": goes into the audit line
  bool verified = false;
};

/// What a connection or a request brought, as its transport saw it.
struct Presented {
  std::vector<std::string>
      subject_names;         // SANs of a certificate that the transport has verified; else empty
  std::string certificates;  // that certificate as PEM, with those between it and its CA behind it
  std::string bearer;        // what follows "Bearer " in `authorization`; empty: nothing
  std::string peer;          // address, for messages
};

/// Tells who somebody is. Thread-safe; never blocks on a disk or a network.
class AccessPolicy {
 public:
  virtual ~AccessPolicy() = default;

  /// Unauthenticated, saying what is missing and never repeating a secret, when this server asks for more
  /// than was brought, or a token is not (any longer) known.
  virtual absl::StatusOr<Identity> Identify(const Presented& presented) const = 0;
};

}  // namespace atl

#endif  // ATOLL_SERVER_ACCESS_ACCESS_POLICY_H_

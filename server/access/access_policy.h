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
  kObserver = 1,  // reads: status, metrics, published parameters
  kWorker = 2,    // joins under its own name and contributes
  kAdmin = 3,     // changes the run
};

/// "observer", "worker", "admin": on command lines, in files.
std::string_view RoleName(Role role);
/// nullopt for an unknown role.
std::optional<Role> ParseRole(std::string_view name);

/// The identity of a caller. In a run without certificates and tokens every caller is trusted: `verified` is
/// false, and the name is only the caller's claim.
struct Identity {
  Role role = Role::kObserver;
  std::string name;  // a worker's, or an operator's; empty: any (nothing binds it to one)
  std::string how;   // "certificate", "token", "none": goes into the audit line
  bool verified = false;
};

/// The credentials of a connection or a request, as seen by its transport.
struct Presented {
  std::vector<std::string>
      subject_names;         // SANs of a certificate that the transport has verified; else empty
  std::string certificates;  // that certificate as PEM, with those between it and its CA behind it
  std::string bearer;        // what follows "Bearer " in `authorization`; empty: nothing
  std::string peer;          // address, for messages
};

/// Identifies callers. Thread-safe; never blocks on a disk or a network.
class AccessPolicy {
 public:
  virtual ~AccessPolicy() = default;

  /// Unauthenticated if required credentials are missing or a token is unknown or no longer valid. The
  /// message names what is missing and never contains a secret.
  virtual absl::StatusOr<Identity> Identify(const Presented& presented) const = 0;
};

}  // namespace atl

#endif  // ATOLL_SERVER_ACCESS_ACCESS_POLICY_H_

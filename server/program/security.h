#ifndef ATOLL_SERVER_PROGRAM_SECURITY_H_
#define ATOLL_SERVER_PROGRAM_SECURITY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/ids.h"
#include "common/log.h"
#include "common/periodic_task.h"
#include "common/tls/live_certificates.h"
#include "common/token_source.h"
#include "core/rank_limits.h"
#include "server/access/certificate_rules.h"
#include "server/access/policies.h"
#include "server/access/token_store.h"

namespace atl {

/// The command line's part about who gets in. docs/guides/security.md
struct SecurityOptions {
  CertificateFiles files;
  std::string client_auth;               // "none", "optional", "require"; empty: require when there is a CA
  std::vector<std::string> worker_sans;  // empty: the defaults of CertificateRuleOptions; as the next two
  std::vector<std::string> admin_sans;
  std::vector<std::string> observer_sans;
  bool require_tokens = false;
  std::string admin_token_file;
  std::string worker_token_file;
  bool insecure_bind = false;
  uint32_t max_ranks = kDefaultMaxRanks;  // of one worker (ServingOptions)
};

/// What a run's coordinator needs to tell who calls: certificates, tokens, the policy made of them. Files are
/// looked at again while it lives.
class ServerSecurity {
 public:
  /// Reads certificates and rules; touches nothing. InvalidArgument, NotFound, ...: which flag or file is
  /// wrong, and how. `clock` outlives it.
  static absl::StatusOr<std::unique_ptr<ServerSecurity>> Load(const SecurityOptions& options,
                                                              const Clock* clock, const Logger& log);

  /// The tokens of the run in this directory, which is ours by now; the first admin's is made when there is
  /// none. Once, before the next ones.
  absl::Status OpenTokens(const std::string& data_dir);
  const AccessPolicy& policy() const { return *policy_; }
  TokenStore* tokens() { return tokens_.get(); }

  const LiveCertificates* certificates() const { return certificates_.get(); }
  /// "none", "optional", "require", as in force.
  const std::string& client_auth() const { return client_auth_; }
  /// Whether callers are asked who they are.
  bool asks() const;
  /// What is wrong with listening on these addresses, for the log and the status; empty: nothing.
  std::string Warning(const std::vector<std::string>& addresses) const;

  /// What a worker that we start on this machine needs beside what its flags give it already: arguments, in
  /// which {name} stands for its name. InvalidArgument naming the flag that it still needs.
  absl::StatusOr<std::vector<std::string>> LaunchedArguments(const std::vector<std::string>& given,
                                                             const std::string& data_dir) const;
  /// A fresh token for this worker, in the file that these arguments name.
  absl::Status PrepareLaunched(const WorkerName& name);

 private:
  ServerSecurity(SecurityOptions options, const Clock* clock, const Logger& log);
  absl::Status MakeRules();
  absl::Status AddTokenFile(const std::string& path, Role role, std::unique_ptr<TokenSource>& source);
  void LookAtTokenFiles();

  const SecurityOptions options_;
  const Clock* const clock_;
  const Logger log_;
  std::string client_auth_;
  std::unique_ptr<LiveCertificates> certificates_;  // null: plain text
  std::unique_ptr<CertificateRules> rules_;         // null: client certificates are not looked at
  std::unique_ptr<TokenStore> tokens_;
  std::unique_ptr<AccessPolicy> policy_;
  std::unique_ptr<TokenSource> admin_token_;
  std::unique_ptr<TokenSource> worker_token_;
  std::string launched_folder_;
  std::unique_ptr<PeriodicTask> looking_;  // last: it uses everything above
};

}  // namespace atl

#endif  // ATOLL_SERVER_PROGRAM_SECURITY_H_

#include "server/program/security_flags.h"

namespace atl {
namespace {

void AddTlsFlags(CLI::App& app, SecurityOptions& options) {
  const std::string group = "TLS (docs/guides/security.md; scripts/dev-certs.sh creates test certificates)";
  app.add_option(
         "--tls-cert", options.files.certificate,
         "Certificate of the coordinator with its intermediates (PEM); reloaded when it changes, like "
         "all files of this group")
      ->group(group);
  app.add_option("--tls-key", options.files.key, "Private key of the certificate (PEM)")->group(group);
  app.add_option("--tls-ca", options.files.ca, "CAs that sign the clients' certificates (PEM)")->group(group);
  app.add_option("--tls-admin-ca", options.files.admin_ca,
                 "CAs that sign operators' certificates; other CAs then cannot make an operator")
      ->group(group);
  app.add_option(
         "--tls-client-auth", options.client_auth,
         "Whether clients must present a certificate; optional: or else a token. Default: require with "
         "--tls-ca, otherwise none")
      ->check(CLI::IsMember({"none", "optional", "require"}))
      ->group(group);
  const auto patterns = [&](const char* flag, std::vector<std::string>& into, const char* help) {
    app.add_option(flag, into, help)->take_all()->allow_extra_args(false)->group(group);
  };
  patterns("--worker-san", options.worker_sans,
           "Certificate names of worker {name}; repeatable. Default: spiffe://*/worker/{name}, and any whole "
           "DNS name");
  patterns("--admin-san", options.admin_sans,
           "Certificate names of operator {name}; repeatable. Default: spiffe://*/admin/{name}");
  patterns("--observer-san", options.observer_sans,
           "Certificate names of observer {name}; repeatable. Default: spiffe://*/observer/{name}");
}

}  // namespace

void AddSecurityFlags(CLI::App& app, SecurityOptions& options) {
  AddTlsFlags(app, options);
  const std::string group = "Tokens (atollctl tokens)";
  app.add_flag(
         "--require-tokens", options.require_tokens,
         "Without TLS: require a token from every caller. With TLS, callers without a certificate always "
         "need one")
      ->group(group);
  app.add_option("--admin-token-file", options.admin_token_file,
                 "File with an admin token, in addition to DATA_DIR/access/admin.token")
      ->envname("ATOLL_ADMIN_TOKEN_FILE")
      ->group(group);
  app.add_option("--worker-token-file", options.worker_token_file,
                 "File with a token for workers of every name: one token for a whole fleet")
      ->envname("ATOLL_WORKER_TOKEN_FILE")
      ->group(group);
  app.add_flag("--insecure-bind", options.insecure_bind,
               "Without TLS: allow addresses that other machines can reach. Anyone on that network can read "
               "and change "
               "the run, so use it only on networks that you trust");
  app.add_option(
         "--max-ranks", options.max_ranks,
         "Maximum number of processes that one worker may consist of (atoll-worker --ranks). Its "
         "contribution counts as many times as a single worker's. Give 1 if you do not trust the workers")
      ->capture_default_str()
      ->check(CLI::Range(1U, kMaxRanks));
}

}  // namespace atl

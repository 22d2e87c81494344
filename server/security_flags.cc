#include "server/security_flags.h"

namespace atoll {
namespace {

void AddTlsFlags(CLI::App& app, SecurityOptions& options) {
  const std::string group = "TLS (docs/operations.md; scripts/dev-certs.sh makes certificates to try it)";
  app.add_option("--tls-cert", options.files.certificate,
                 "The coordinator's certificate (PEM, with those between it and its CA); read again when it "
                 "changes, as every file here")
      ->group(group);
  app.add_option("--tls-key", options.files.key, "Its private key (PEM)")->group(group);
  app.add_option("--tls-ca", options.files.ca, "The CAs that sign clients' certificates (PEM)")->group(group);
  app.add_option("--tls-admin-ca", options.files.admin_ca,
                 "The CAs that sign operators' certificates; then nobody else's make an operator")
      ->group(group);
  app.add_option("--tls-client-auth", options.client_auth,
                 "Whether clients must show a certificate: none, optional (else a token), require; default: "
                 "require with --tls-ca, else none")
      ->check(CLI::IsMember({"none", "optional", "require"}))
      ->group(group);
  const auto patterns = [&](const char* flag, std::vector<std::string>& into, const char* help) {
    app.add_option(flag, into, help)->take_all()->allow_extra_args(false)->group(group);
  };
  patterns("--worker-san", options.worker_sans,
           "Names in certificates that mean worker {name}; may be given again; default: "
           "spiffe://*/worker/{name}, and any DNS name, whole");
  patterns("--admin-san", options.admin_sans,
           "Names that mean operator {name}; may be given again; default: spiffe://*/admin/{name}");
  patterns("--observer-san", options.observer_sans,
           "Names that mean observer {name}; may be given again; default: spiffe://*/observer/{name}");
}

}  // namespace

void AddSecurityFlags(CLI::App& app, SecurityOptions& options) {
  AddTlsFlags(app, options);
  const std::string group = "Tokens (atollctl tokens)";
  app.add_flag("--require-tokens", options.require_tokens,
               "Without TLS: ask every caller for a token. (With TLS whoever shows no certificate is asked)")
      ->group(group);
  app.add_option(
         "--admin-token-file", options.admin_token_file,
         "File with a token that is good for an admin, besides the one made in DATA_DIR/access/admin.token")
      ->envname("ATOLL_ADMIN_TOKEN_FILE")
      ->group(group);
  app.add_option("--worker-token-file", options.worker_token_file,
                 "File with a token that is good for workers of any name: one for a whole fleet")
      ->envname("ATOLL_WORKER_TOKEN_FILE")
      ->group(group);
  app.add_flag(
      "--insecure-bind", options.insecure_bind,
      "Without TLS: allow addresses that other machines can reach. Whoever listens or calls there can "
      "read and change the run: only on networks you trust");
}

}  // namespace atoll

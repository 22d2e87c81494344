#include "server/program/security.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/bind_address.h"
#include "common/file.h"
#include "common/status.h"
#include "storage/rocksdb/data_dir.h"

namespace atl {
namespace {

constexpr Duration kLookEvery = Seconds(2);
constexpr unsigned kOwnerOnly = 0600;
// Where a process on this machine connects to.
constexpr char kThisMachine[] = "127.0.0.1";

absl::Status CheckOptions(const SecurityOptions& options) {
  const CertificateFiles& files = options.files;
  const bool tls = !files.certificate.empty();
  const bool roots = !files.ca.empty() || !files.admin_ca.empty();
  if (tls != !files.key.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key: give both, or neither");
  }
  if (!tls && (roots || !options.client_auth.empty())) {
    return absl::InvalidArgumentError(
        "--tls-ca, --tls-admin-ca and --tls-client-auth need the coordinator's own certificate: --tls-cert "
        "and "
        "--tls-key");
  }
  if (!roots && !options.client_auth.empty() && options.client_auth != "none") {
    return absl::InvalidArgumentError(
        absl::StrFormat("--tls-client-auth %s: which CA signs the clients' certificates? --tls-ca FILE",
                        options.client_auth));
  }
  return absl::OkStatus();
}

/// Whether an earlier start has made tokens: the shards of a run come after them. A checkpoint has shards and
/// no tokens.
bool HadTokens(const std::string& data_dir) {
  const DataDir dir{.root = data_dir};
  return FileExists(dir.shards()) && !FileExists(dir.checkpoint_begun());
}

/// Whether one of these arguments gives the flag, in whichever form.
bool Gives(const std::vector<std::string>& arguments, std::string_view flag) {
  return std::any_of(arguments.begin(), arguments.end(), [flag](const std::string& argument) {
    return argument == flag || argument.starts_with(std::string(flag) + "=");
  });
}

}  // namespace

ServerSecurity::ServerSecurity(SecurityOptions options, const Clock* clock, const Logger& log)
    : options_(std::move(options)), clock_(clock), log_(log.With("component", "access")) {}

absl::StatusOr<std::unique_ptr<ServerSecurity>> ServerSecurity::Load(const SecurityOptions& options,
                                                                     const Clock* clock, const Logger& log) {
  ATOLL_RETURN_IF_ERROR(CheckOptions(options));
  std::unique_ptr<ServerSecurity> security(new ServerSecurity(options, clock, log));
  if (options.files.certificate.empty()) return security;
  LiveCertificateOptions live;
  live.files = options.files;
  live.clock = clock;
  live.period = kLookEvery;
  live.on_change = [logger = security->log_](const absl::Status& outcome, const CertificateSet& now) {
    if (outcome.ok()) {
      logger.Info("certificates reloaded; they hold for connections from now on",
                  {{"valid_until", UtcMinute(now.facts.not_after)}});
    } else {
      logger.Error("certificate files cannot be used; going on with what was read before",
                   {{"why", std::string(outcome.message())}});
    }
  };
  ATOLL_ASSIGN_OR_RETURN(security->certificates_, LiveCertificates::Load(std::move(live)));
  const auto now = security->certificates_->current();
  const bool roots = !now->roots.empty();
  security->client_auth_ = options.client_auth.empty() ? (roots ? "require" : "none") : options.client_auth;
  ATOLL_RETURN_IF_ERROR(security->MakeRules());
  security->log_.Info("TLS", {{"certificate", now->facts.subject},
                              {"valid_until", UtcMinute(now->facts.not_after)},
                              {"client_certificates", security->client_auth_}});
  return security;
}

absl::Status ServerSecurity::MakeRules() {
  if (client_auth_ == "none") return absl::OkStatus();
  CertificateRuleOptions rules;
  if (!options_.worker_sans.empty()) rules.worker_sans = options_.worker_sans;
  if (!options_.admin_sans.empty()) rules.admin_sans = options_.admin_sans;
  if (!options_.observer_sans.empty()) rules.observer_sans = options_.observer_sans;
  if (!options_.files.admin_ca.empty()) {
    rules.admin_ca = [live = certificates_.get()] { return live->current()->admin_ca; };
  }
  ATOLL_ASSIGN_OR_RETURN(rules_, CertificateRules::Create(rules));
  return absl::OkStatus();
}

bool ServerSecurity::asks() const {
  return certificates_ != nullptr || options_.require_tokens || !options_.admin_token_file.empty() ||
         !options_.worker_token_file.empty();
}

absl::Status ServerSecurity::OpenTokens(const std::string& data_dir) {
  const std::string folder = JoinPath(data_dir, "access");
  const std::string file = TokenStore::FileIn(folder);
  if (HadTokens(data_dir) && !FileExists(file)) {
    log_.Warning(
        "the tokens of this run are lost: its token file is missing. Every token that was made before is "
        "refused; to use them again, stop the coordinator, put a backup in the file's place and start it",
        {{"file", file}});
  }
  ATOLL_ASSIGN_OR_RETURN(tokens_, TokenStore::Open(folder, clock_));
  ATOLL_ASSIGN_OR_RETURN(const std::string made, tokens_->EnsureAdmin());
  if (!made.empty()) log_.Info("an admin's token for this run was made", {{"file", made}});
  ATOLL_RETURN_IF_ERROR(AddTokenFile(options_.admin_token_file, Role::kAdmin, admin_token_));
  ATOLL_RETURN_IF_ERROR(AddTokenFile(options_.worker_token_file, Role::kWorker, worker_token_));
  launched_folder_ = JoinPath(folder, "launched");
  policy_ = asks() ? MakeAskingPolicy(tokens_.get(), rules_.get()) : MakeOpenPolicy(tokens_.get());
  if (admin_token_ != nullptr || worker_token_ != nullptr) {
    looking_ = std::make_unique<PeriodicTask>("token-files", kLookEvery, [this] { LookAtTokenFiles(); });
  }
  return absl::OkStatus();
}

absl::Status ServerSecurity::AddTokenFile(const std::string& path, Role role,
                                          std::unique_ptr<TokenSource>& source) {
  if (path.empty()) return absl::OkStatus();
  ATOLL_ASSIGN_OR_RETURN(source, TokenSource::Open(path, clock_));
  const bool admin = role == Role::kAdmin;
  return tokens_->Give(admin ? "admin-token-file" : "worker-token-file", role, admin ? "admin" : "",
                       source->Current());
}

void ServerSecurity::LookAtTokenFiles() {
  const auto give = [this](TokenSource* source, const char* label, Role role, const char* name) {
    if (source == nullptr) return;
    const absl::Status given = tokens_->Give(label, role, name, source->Current());
    if (!given.ok()) log_.Error("a token file cannot be used", {{"why", std::string(given.message())}});
  };
  give(admin_token_.get(), "admin-token-file", Role::kAdmin, "admin");
  give(worker_token_.get(), "worker-token-file", Role::kWorker, "");
}

std::string ServerSecurity::Warning(const std::vector<std::string>& addresses) const {
  if (certificates_ != nullptr) return "";
  std::vector<std::string> reachable;
  for (const std::string& address : addresses) {
    const auto parsed = ParseBindAddress(address);
    if (parsed.ok() && !IsLoopback(*parsed)) reachable.push_back(address);
  }
  if (reachable.empty()) return "";
  return absl::StrFormat(
      "INSECURE: other machines reach %s, and there is no TLS: %s; give --tls-cert and --tls-key",
      absl::StrJoin(reachable, " and "),
      asks() ? "anyone on the network path can read the model and the tokens"
             : "anyone who reaches them can read, change and stop this run, under any name");
}

absl::StatusOr<std::vector<std::string>> ServerSecurity::LaunchedArguments(
    const std::vector<std::string>& given, const std::string& data_dir) const {
  std::vector<std::string> more;
  const bool certified = Gives(given, "--tls-cert");
  if (certificates_ != nullptr) {
    if (client_auth_ == "require" && !certified) {
      return absl::InvalidArgumentError(
          "--launcher process with --tls-client-auth require: its workers need certificates of their own; "
          "give "
          "--worker-arg=--tls-cert=certs/worker-{name}.pem --worker-arg=--tls-key=certs/worker-{name}.key "
          "(or "
          "--tls-client-auth optional: then they get tokens)");
    }
    if (!Gives(given, "--tls-ca") && !Gives(given, "--tls")) {
      if (options_.files.ca.empty()) {
        return absl::InvalidArgumentError(
            "--launcher process with TLS: its workers need the CA that signed the coordinator's certificate; "
            "give --worker-arg=--tls-ca=FILE (or --worker-arg=--tls: this system's)");
      }
      more.insert(more.end(), {"--tls-ca", options_.files.ca});
    }
    const auto now = certificates_->current();
    const bool other_name = !CoversHost(now->certificate, kThisMachine) && !now->facts.dns_names.empty();
    if (other_name && !Gives(given, "--tls-server-name")) {
      more.insert(more.end(), {"--tls-server-name", now->facts.dns_names.front()});
    }
  }
  if (asks() && !certified && !Gives(given, "--token-file")) {
    more.insert(more.end(), {"--token-file",
                             JoinPath(JoinPath(JoinPath(data_dir, "access"), "launched"), "{name}.token")});
    // On this machine all the same, whatever the address is.
    if (certificates_ == nullptr && !Gives(given, "--insecure-token")) more.push_back("--insecure-token");
  }
  return more;
}

absl::Status ServerSecurity::PrepareLaunched(const WorkerName& name) {
  if (!asks()) return absl::OkStatus();
  ATOLL_RETURN_IF_ERROR(CreateDirs(launched_folder_));
  const std::string label = "launched-" + name;
  const std::string text = MakeTokenText(label);
  ATOLL_RETURN_IF_ERROR(tokens_->Give(label, Role::kWorker, name, text));
  return WriteFileAtomically(JoinPath(launched_folder_, name + ".token"), text + "\n", kOwnerOnly);
}

}  // namespace atl

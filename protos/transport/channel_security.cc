#include "protos/transport/channel_security.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/bind_address.h"
#include "common/status.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_credentials_options.h"

namespace atl {
namespace {

constexpr unsigned kGrpcLooksEverySeconds = 1;
constexpr Duration kFresh = Seconds(10);

const Clock* SystemClockOfAll() {
  static const SystemClock clock{};
  return &clock;
}

absl::Status CheckFlags(const ClientSecurityFlags& flags) {
  if (flags.tls_cert.empty() != flags.tls_key.empty()) {
    return absl::InvalidArgumentError("--tls-cert and --tls-key: give both, or neither");
  }
  if (!flags.tls_server_name.empty() && !flags.UsesTls()) {
    return absl::InvalidArgumentError("--tls-server-name: without TLS there is no name to check; --tls-ca");
  }
  return absl::OkStatus();
}

LiveCertificateOptions CertificateOptions(const ClientSecurityFlags& flags, const Clock* clock,
                                          const Logger& log) {
  LiveCertificateOptions options;
  options.files = {.certificate = flags.tls_cert, .key = flags.tls_key, .ca = flags.tls_ca, .admin_ca = {}};
  options.use = CertificateUse::kClient;
  options.clock = clock;
  options.on_change = [log](const absl::Status& outcome, const CertificateSet& now) {
    if (!outcome.ok()) {
      log.Warning("certificate files cannot be used; going on with what was read before",
                  {{"why", std::string(outcome.message())}});
    } else if (!now.certificate.empty()) {
      log.Info("certificates reloaded", {{"valid_until", UtcMinute(now.facts.not_after)}});
    } else {
      log.Info("certificates reloaded");
    }
  };
  return options;
}

}  // namespace

ChannelSecurity::ChannelSecurity(ClientSecurityFlags flags, const Clock* clock)
    : flags_(std::move(flags)), clock_(clock), credentials_(grpc::InsecureChannelCredentials()) {}

std::shared_ptr<ChannelSecurity> ChannelSecurity::Plain() {
  return std::shared_ptr<ChannelSecurity>(new ChannelSecurity({}, SystemClockOfAll()));
}

absl::StatusOr<std::shared_ptr<ChannelSecurity>> ChannelSecurity::Create(const ClientSecurityFlags& flags,
                                                                         const Clock* clock,
                                                                         const Logger& log) {
  ATOLL_RETURN_IF_ERROR(CheckFlags(flags));
  std::shared_ptr<ChannelSecurity> security(new ChannelSecurity(flags, clock));
  if (!flags.token_file.empty()) {
    auto token = TokenSource::Open(flags.token_file, clock);
    if (!token.ok()) {
      return absl::Status(token.status().code(),
                          absl::StrCat("--token-file: ", std::string(token.status().message())));
    }
    security->token_ = *std::move(token);
  }
  if (!flags.UsesTls()) return security;
  ATOLL_ASSIGN_OR_RETURN(security->certificates_,
                         LiveCertificates::Load(CertificateOptions(flags, clock, log)));
  security->MakeCredentials();
  return security;
}

void ChannelSecurity::MakeCredentials() {
  using grpc::experimental::FileWatcherCertificateProvider;
  grpc::experimental::TlsChannelCredentialsOptions options;
  const std::string certificate = certificates_->certificate_path(), roots = certificates_->roots_path();
  if (!certificate.empty() || !roots.empty()) {
    options.set_certificate_provider(std::make_shared<FileWatcherCertificateProvider>(
        certificates_->key_path(), certificate, roots, kGrpcLooksEverySeconds));
  }
  if (!roots.empty()) options.watch_root_certs();
  if (!certificate.empty()) options.watch_identity_key_cert_pairs();
  credentials_ = grpc::experimental::TlsCredentials(options);
}

absl::Status ChannelSecurity::CheckTarget(const std::string& address) const {
  if (token_ == nullptr || flags_.UsesTls() || flags_.insecure_token) return absl::OkStatus();
  const auto target = ParseBindAddress(address);
  if (target.ok() && IsLoopback(*target)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "the token would travel to %s in plain text, for everybody between to read: give --tls-ca FILE (or "
      "--tls), or say --insecure-token on a network that you trust",
      address));
}

void ChannelSecurity::SetArguments(grpc::ChannelArguments& arguments) const {
  if (!flags_.tls_server_name.empty()) arguments.SetSslTargetNameOverride(flags_.tls_server_name);
}

void ChannelSecurity::Authorize(grpc::ClientContext& context) const {
  if (token_ != nullptr) context.AddMetadata("authorization", "Bearer " + token_->Current());
}

std::shared_ptr<const CertificateSet> ChannelSecurity::certificates() const {
  return certificates_ == nullptr ? nullptr : certificates_->current();
}

absl::Status ChannelSecurity::files_outcome() const {
  return certificates_ == nullptr ? absl::OkStatus() : certificates_->last_outcome();
}

ProbeFinding ChannelSecurity::LookAtConnection(const std::string& address, const std::string& grpc_message,
                                               CoordinatorPort port) const {
  // Nobody listens: that has been said.
  if (absl::StrContains(grpc_message, "refused")) return {};
  {
    MutexLock lock(&mutex_);
    const auto known = findings_.find({address, port});
    if (known != findings_.end() && clock_->Now() - known->second.when < kFresh) return known->second.finding;
  }
  const auto target = ParseBindAddress(address);
  if (!target.ok()) return {};
  ProbeOptions probe;
  probe.host = target->host;
  probe.port = target->port;
  probe.wanted = port;
  probe.tls = flags_.UsesTls();
  if (const auto set = certificates()) {
    probe.roots = set->roots;
    probe.certificate = set->certificate;
    probe.key = set->key;
    probe.certificate_file = flags_.tls_cert;
  }
  probe.server_name = flags_.tls_server_name;
  const ProbeFinding found = Probe(probe);
  MutexLock lock(&mutex_);
  findings_[{address, port}] = {.when = clock_->Now(), .finding = found};
  return found;
}

}  // namespace atl

#ifndef ATOLL_TESTS_SERVER_RPC_SECURE_FIXTURE_H_
#define ATOLL_TESTS_SERVER_RPC_SECURE_FIXTURE_H_

#include <memory>
#include <string>

#include "common/tls/live_certificates.h"
#include "grpcpp/generic/generic_stub.h"
#include "protos/transport/channel_security.h"
#include "server/access/certificate_rules.h"
#include "server/access/policies.h"
#include "server/access/token_store.h"
#include "tests/fakes/dev_certs.h"
#include "tests/server/rpc/rpc_fixture.h"

namespace atl {

/// A real server over sockets that asks who calls, with certificates made for the test.
class SecureFixture : public RpcFixture {
 protected:
  void SetUp() override {
    tokens_ = *TokenStore::Open(dir_.File("access"), &clock_);
    certs_.Make("--coordinator --worker w1 --worker w2 --admin ann --observer prometheus");
  }

  /// TLS, and a certificate from every client, unless `wanted` says otherwise.
  void ServeTls(ClientCertificates wanted = ClientCertificates::kRequired) {
    LiveCertificateOptions live;
    live.files = {.certificate = certs_.Path("coordinator.pem"),
                  .key = certs_.Path("coordinator.key"),
                  .ca = wanted == ClientCertificates::kNone ? "" : certs_.Path("ca.pem"),
                  .admin_ca = {}};
    live.clock = &clock_;
    live.period = Seconds(0.05);
    auto certificates = LiveCertificates::Load(std::move(live));
    ASSERT_TRUE(certificates.ok()) << certificates.status();
    certificates_ = *std::move(certificates);
    if (wanted != ClientCertificates::kNone) rules_ = *CertificateRules::Create({});
    RpcServerOptions options = Options();
    options.security.certificates = certificates_.get();
    options.security.client_certificates = wanted;
    ServeAsking(options);
  }
  /// Plain text on this machine, and a token from everybody.
  void ServeTokens() { ServeAsking(Options()); }

  ClientSecurityFlags As(const std::string& who) const {
    ClientSecurityFlags flags;
    flags.tls_ca = certs_.Path("ca.pem");
    if (who.empty()) return flags;
    flags.tls_cert = certs_.Path(who + ".pem");
    flags.tls_key = certs_.Path(who + ".key");
    return flags;
  }
  /// The flags with a token of this role and name, in a file.
  ClientSecurityFlags WithToken(ClientSecurityFlags flags, Role role, const std::string& name) {
    const auto made =
        tokens_->Create({.role = role, .name = name, .lifetime = std::nullopt, .created_by = "test"});
    EXPECT_TRUE(made.ok()) << made.status();
    token_id_ = made->record.id;
    flags.token_file = dir_.File("token-" + token_id_);
    EXPECT_TRUE(WriteFileAtomically(flags.token_file, made->text + "\n").ok());
    return flags;
  }
  std::shared_ptr<ChannelSecurity> Secure(const ClientSecurityFlags& flags) const {
    auto made = ChannelSecurity::Create(flags, &clock_, Logger());
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? *made : ChannelSecurity::Plain();
  }

  /// A channel with a connection of its own.
  static std::shared_ptr<grpc::Channel> Connect(const ChannelSecurity& security, const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
    security.SetArguments(arguments);
    return grpc::CreateCustomChannel(address, security.credentials(), arguments);
  }
  static std::unique_ptr<grpc::ClientContext> ContextOf(const ChannelSecurity& security) {
    auto context = Context();
    security.Authorize(*context);
    return context;
  }

  absl::Status Join(const ClientSecurityFlags& flags, const std::string& name,
                    v1::Role role = v1::ROLE_TRAINER) {
    const auto security = Secure(flags);
    const auto stub = v1::Coordinator::NewStub(Connect(*security, server_->data_address()));
    v1::JoinRequest request = JoinAs(name);
    request.set_role(role);
    v1::JoinReply reply;
    return StatusFromGrpc(stub->Join(ContextOf(*security).get(), request, &reply));
  }
  absl::Status GetStatus(const ClientSecurityFlags& flags) {
    const auto security = Secure(flags);
    const auto stub = v1::Admin::NewStub(Connect(*security, server_->admin_address()));
    v1::GetStatusReply reply;
    return StatusFromGrpc(stub->GetStatus(ContextOf(*security).get(), v1::GetStatusRequest(), &reply));
  }
  std::string WhyNot(const ClientSecurityFlags& flags, const std::string& address) const {
    return Secure(flags)->WhyNoConnection(address, "");
  }

  TestDir dir_;
  DevCerts certs_;
  std::unique_ptr<TokenStore> tokens_;
  std::unique_ptr<CertificateRules> rules_;
  std::unique_ptr<LiveCertificates> certificates_;
  std::unique_ptr<AccessPolicy> policy_;
  std::string token_id_;
  std::atomic<int> rejected_{0};

 private:
  void ServeAsking(RpcServerOptions options) {
    policy_ = MakeAskingPolicy(tokens_.get(), rules_.get());
    options.security.access = policy_.get();
    options.security.tokens = tokens_.get();
    options.on_call_rejected = [this](std::string_view) { ++rejected_; };
    Serve(options);
  }

 public:
  /// The server uses what is above.
  void TearDown() override { server_.reset(); }
};

}  // namespace atl

#endif  // ATOLL_TESTS_SERVER_RPC_SECURE_FIXTURE_H_

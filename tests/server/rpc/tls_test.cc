// Certificates that are replaced under running connections, and what is said when they are in the way.
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "common/bind_address.h"
#include "common/file_descriptor.h"
#include "common/tls/probe.h"
#include "gmock/gmock.h"
#include "tests/fakes/loopback_server.h"
#include "tests/server/rpc/secure_fixture.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TlsTest : public SecureFixture {
 protected:
  /// What a coordinator says at its start about the certificate NAME.pem.
  absl::Status CoordinatorTakes(const std::string& name) {
    LiveCertificateOptions live;
    live.files = {.certificate = certs_.Path(name + ".pem"),
                  .key = certs_.Path(name + ".key"),
                  .ca = certs_.Path("ca.pem"),
                  .admin_ca = {}};
    live.clock = &clock_;
    return LiveCertificates::Load(live).status();
  }

  /// Starts a server that shows NAME.pem whatever is wrong with it, as a coordinator of another version
  /// might. Returns its address.
  std::string Show(const std::string& name) {
    grpc::SslServerCredentialsOptions shown;
    shown.pem_key_cert_pairs.push_back({certs_.Read(name + ".key"), certs_.Read(name + ".pem")});
    shown_server_.emplace(&shown_service_, grpc::SslServerCredentials(shown));
    return shown_server_->address();
  }

 private:
  v1::Admin::Service shown_service_;
  std::optional<LoopbackServer> shown_server_;
};

TEST_F(TlsTest, CertificatesAndTheCaAreReplacedUnderAConnectedWorker) {
  ServeTls();
  const auto old = Secure(As("worker-w1"));
  const std::string old_ca = dir_.File("old-ca.pem");
  ASSERT_TRUE(WriteFileAtomically(old_ca, certs_.Read("ca.pem")).ok());
  const auto stub = v1::Coordinator::NewStub(Connect(*old, server_->data_address()));
  v1::JoinReply reply;
  ASSERT_TRUE(stub->Join(Context().get(), JoinAs("w1"), &reply).ok());
  // Everything at once: another CA, and what it signs.
  DevCerts fresh;
  fresh.Make("--coordinator --worker w1");
  for (const char* name :
       {"ca.pem", "coordinator.pem", "coordinator.key", "worker-w1.pem", "worker-w1.key"}) {
    ASSERT_TRUE(WriteFileAtomically(certs_.Path(name), fresh.Read(name), 0600).ok());
    // The connection that is there goes on, whatever is half replaced.
    EXPECT_TRUE(stub->Join(Context().get(), JoinAs("w1"), &reply).ok()) << name;
  }
  ASSERT_TRUE(Eventually([&] { return certificates_->current()->roots == fresh.Read("ca.pem"); }));
  ASSERT_TRUE(Eventually([&] { return Join(As("worker-w1"), "w1").ok(); })) << "with the new ones";
  EXPECT_TRUE(stub->Join(Context().get(), JoinAs("w1"), &reply).ok());
  ClientSecurityFlags behind = As("worker-w1");
  behind.tls_ca = old_ca;
  EXPECT_THAT(WhyNot(behind, server_->data_address()), HasSubstr("--tls-ca does not trust"));
  // The client whose files were replaced under it connects anew with what they hold now.
  const auto again = v1::Coordinator::NewStub(Connect(*old, server_->data_address()));
  EXPECT_TRUE(Eventually([&] { return again->Join(Context().get(), JoinAs("w1"), &reply).ok(); }));
}

TEST_F(TlsTest, FilesThatCannotBeUsedLeaveWhatIsInForce) {
  ServeTls();
  const std::string good = certs_.Read("coordinator.key");
  ASSERT_TRUE(WriteFileAtomically(certs_.Path("coordinator.key"), certs_.Read("worker-w1.key"), 0600).ok());
  ASSERT_TRUE(Eventually([&] { return !certificates_->last_outcome().ok(); }));
  EXPECT_THAT(std::string(certificates_->last_outcome().message()),
              AllOf(HasSubstr("coordinator.key"), HasSubstr("does not match the certificate")));
  EXPECT_TRUE(Join(As("worker-w1"), "w1").ok());
  ASSERT_TRUE(WriteFileAtomically(certs_.Path("coordinator.key"), good, 0600).ok());
  EXPECT_TRUE(Eventually([&] { return certificates_->last_outcome().ok(); }));
}

TEST_F(TlsTest, SaysWhenOneSideSpeaksPlainText) {
  ServeTls();
  EXPECT_THAT(WhyNot({}, server_->data_address()), AllOf(HasSubstr("needs TLS"), HasSubstr("--tls-ca")));
  server_.reset();
  ServeTokens();
  EXPECT_THAT(WhyNot(As("worker-w1"), server_->data_address()),
              AllOf(HasSubstr("does not use TLS"), HasSubstr("--tls-cert")));
  EXPECT_EQ(WhyNot({}, server_->data_address()), "");
}

TEST_F(TlsTest, SaysWhatIsWrongWithTheCoordinatorsCertificate) {
  DevCerts others;
  others.Make("--coordinator");
  ServeTls();
  ClientSecurityFlags flags = As("worker-w1");
  EXPECT_EQ(WhyNot(flags, server_->data_address()), "");
  flags.tls_ca = others.Path("ca.pem");
  EXPECT_THAT(WhyNot(flags, server_->data_address()), HasSubstr("--tls-ca does not trust"));
  flags = As("worker-w1");
  flags.tls_server_name = "coordinator.example";
  EXPECT_THAT(WhyNot(flags, server_->data_address()),
              AllOf(HasSubstr("localhost"), HasSubstr("not for coordinator.example"),
                    HasSubstr("--tls-server-name")));
  flags.tls_server_name = "localhost";
  EXPECT_EQ(WhyNot(flags, server_->data_address()), "");
  EXPECT_TRUE(Join(flags, "w1").ok());
}

TEST_F(TlsTest, ACertificateForTheOtherSideIsRejectedAtTheStartAndNamed) {
  EXPECT_THAT(std::string(CoordinatorTakes("worker-w1").message()),
              AllOf(HasSubstr("worker-w1.pem"), HasSubstr("not for a server"), HasSubstr("serverAuth"),
                    HasSubstr("dev-certs.sh FOLDER --coordinator")));
  const auto client = ChannelSecurity::Create(As("coordinator"), &clock_, Logger());
  EXPECT_THAT(std::string(client.status().message()),
              AllOf(HasSubstr("coordinator.pem"), HasSubstr("not for a client"), HasSubstr("clientAuth"),
                    HasSubstr("--worker NAME")));
  EXPECT_THAT(WhyNot(As("worker-w1"), Show("worker-w1")),
              AllOf(HasSubstr("--tls-ca trusts"), HasSubstr("'CN = w1' is not for a server"),
                    HasSubstr("--tls-cert"), ::testing::Not(HasSubstr("does not trust"))));
}

TEST_F(TlsTest, NamesThePortThatWasWanted) {
  // Plain HTTP, as on the port for metrics.
  const FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place = {};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(place);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&place), size), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&place), &size), 0);
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  std::thread http([&] {
    while (true) {
      const FileDescriptor one(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!one.valid()) return;
      char asked[64];
      if (::recv(one.get(), asked, sizeof(asked), 0) <= 0) continue;
      constexpr std::string_view kAnswer = "HTTP/1.1 400 Bad Request\r\n\r\n";
      ::send(one.get(), kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL);
    }
  });
  const std::string address = "127.0.0.1:" + std::to_string(ntohs(place.sin_port));
  const auto plain = Secure({});
  EXPECT_THAT(plain->WhyNoConnection(address, "", CoordinatorPort::kAdmin),
              HasSubstr("protocol of a coordinator's admin port"));
  EXPECT_THAT(plain->WhyNoConnection(address, "", CoordinatorPort::kData),
              HasSubstr("protocol of a coordinator's data port"));
  ::shutdown(listener.get(), SHUT_RDWR);
  http.join();
}

TEST_F(TlsTest, SaysWhatTheCoordinatorDoesNotTake) {
  DevCerts others;
  others.Make("--worker w1");
  ServeTls();
  EXPECT_THAT(WhyNot(As(""), server_->data_address()),
              AllOf(HasSubstr("requires a certificate"), HasSubstr("--tls-cert"),
                    HasSubstr("--tls-client-auth optional")));
  ClientSecurityFlags stranger = As("worker-w1");
  stranger.tls_cert = others.Path("worker-w1.pem");
  stranger.tls_key = others.Path("worker-w1.key");
  EXPECT_THAT(WhyNot(stranger, server_->data_address()),
              AllOf(HasSubstr("rejects our certificate (--tls-cert " + stranger.tls_cert + ")"),
                    HasSubstr("spiffe://atoll/worker/w1")));
  EXPECT_TRUE(Secure(stranger)->LookAtConnection(server_->data_address(), "").looks_permanent);
  EXPECT_FALSE(Join(stranger, "w1").ok());
  EXPECT_FALSE(Join(As(""), "w1").ok());
}

TEST_F(TlsTest, AnExpiredCertificateIsRejectedOnBothSides) {
  certs_.Make("--worker old --days -1");
  const auto ours = ChannelSecurity::Create(As("worker-old"), &clock_, Logger());
  EXPECT_THAT(std::string(ours.status().message()),
              AllOf(HasSubstr("worker-old.pem"), HasSubstr("expired on")));
  // One that expired under a running program: shown all the same, and refused.
  ServeTls();
  ProbeOptions probe;
  const auto address = ParseBindAddress(server_->data_address());
  probe.host = address->host;
  probe.port = address->port;
  probe.tls = true;
  probe.roots = certs_.Read("ca.pem");
  probe.certificate = certs_.Read("worker-old.pem");
  probe.key = certs_.Read("worker-old.key");
  EXPECT_THAT(WhyNoConnection(probe),
              AllOf(HasSubstr("our certificate expired on"), HasSubstr("--tls-cert")));
  server_.reset();
  certs_.Make("--renew --coordinator --days -1");
  EXPECT_THAT(std::string(CoordinatorTakes("coordinator").message()), HasSubstr("expired on"));
  EXPECT_THAT(WhyNot(As("worker-w1"), Show("coordinator")),
              AllOf(HasSubstr("the coordinator's certificate expired on"), HasSubstr("--tls-key")));
}

TEST_F(TlsTest, ATokenStaysOnThisMachineUnlessItIsEncrypted) {
  const auto plain = Secure(WithToken({}, Role::kWorker, "w1"));
  EXPECT_TRUE(plain->CheckTarget("127.0.0.1:7600").ok());
  const absl::Status rejected = plain->CheckTarget("10.0.0.7:7600");
  EXPECT_TRUE(absl::IsInvalidArgument(rejected));
  EXPECT_THAT(std::string(rejected.message()), AllOf(HasSubstr("plain text"), HasSubstr("--tls-ca")));
  ClientSecurityFlags insecure = WithToken({}, Role::kWorker, "w1");
  insecure.insecure_token = true;
  EXPECT_TRUE(Secure(insecure)->CheckTarget("10.0.0.7:7600").ok());
  EXPECT_TRUE(Secure(WithToken(As(""), Role::kWorker, "w1"))->CheckTarget("10.0.0.7:7600").ok());
}

TEST_F(TlsTest, OtherMachinesAreLetInWithCertificates) {
  ServeTls();
  RpcServerOptions options = Options();
  options.data_address = "0.0.0.0:0";
  options.security.certificates = certificates_.get();
  EXPECT_TRUE(RpcServer::CheckAddress(options.data_address, options).ok());
  // But not without somebody who asks.
  EXPECT_TRUE(absl::IsInvalidArgument(RpcServer::Start(options, &coordinator_, &clock_, Logger()).status()));
  options.security.access = policy_.get();
  EXPECT_TRUE(RpcServer::Start(options, &coordinator_, &clock_, Logger()).ok());
}

}  // namespace
}  // namespace atl

// The web server over real sockets: what it sends with every answer, what it refuses, whom it hangs up on.
#include "server/web/web_server.h"

#include <chrono>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/launch/http_client.h"
#include "tests/common/test_dir.h"
#include "tests/fakes/fake_coordinator.h"
#include "tests/integration/process.h"
#include "tests/server/web/fake_policy.h"
#include "tests/server/web/raw_http.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

class WebServerTest : public ::testing::Test {
 protected:
  static WebServerOptions Options() {
    WebServerOptions options;
    options.address = "127.0.0.1:0";
    options.tick = Seconds(0.05);
    return options;
  }
  void Serve(WebServerOptions options = Options()) {
    options.access = &policy_;
    auto server = WebServer::Start(options, &coordinator_, &clock_, Logger());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  uint16_t port() const { return server_->address().port; }
  /// `head` without the empty line; a Host that is ours unless it has one.
  std::string Ask(std::string head, const std::string& body = "") const {
    head += "\r\n";
    if (head.find("Host:") == std::string::npos) head += "Host: localhost\r\n";
    return RawExchange(port(), head + "Connection: close\r\n\r\n" + body);
  }
  static std::string ActionHead(const std::string& token, size_t length) {
    return "POST /api/v1/control-run HTTP/1.1\r\nContent-Type: application/json\r\nAtoll-Action: 1\r\n"
           "Authorization: Bearer " +
           token + "\r\nContent-Length: " + std::to_string(length);
  }

  const SystemClock clock_{};
  FakeCoordinator coordinator_;
  FakePolicy policy_;
  std::unique_ptr<WebServer> server_;
};

TEST_F(WebServerTest, EveryAnswerCarriesTheHeadersThatKeepOthersOut) {
  Serve();
  for (const char* target : {"/", "/page.js", "/api/v1/status", "/api/v1/session", "/nothing"}) {
    const std::string answer = Ask(std::string("GET ") + target + " HTTP/1.1");
    EXPECT_THAT(answer,
                AllOf(HasSubstr("Content-Security-Policy: default-src 'none'; script-src 'self';"),
                      HasSubstr("frame-ancestors 'none'"), HasSubstr("X-Content-Type-Options: nosniff\r\n"),
                      HasSubstr("X-Frame-Options: DENY\r\n"), HasSubstr("Cache-Control: no-store\r\n"),
                      HasSubstr("Referrer-Policy: no-referrer\r\n"), HasSubstr("Date: ")))
        << target;
    EXPECT_THAT(answer,
                Not(AnyOf(HasSubstr("Access-Control-"), HasSubstr("Set-Cookie"), HasSubstr("Server:"))))
        << target;
  }
}

TEST_F(WebServerTest, AnswersOverTheSocketAsWithoutIt) {
  coordinator_.status_view.run_name = "small";
  Serve();
  const std::string answer = Ask("GET /api/v1/status?history=5 HTTP/1.1");
  EXPECT_EQ(StatusIn(answer), 200);
  EXPECT_EQ(nlohmann::json::parse(BodyIn(answer))["runName"], "small");
  const std::string head = Ask("HEAD /api/v1/status HTTP/1.1");
  EXPECT_EQ(StatusIn(head), 200);
  EXPECT_EQ(BodyIn(head), "");
  const std::string page = Ask("GET / HTTP/1.1");
  const size_t tag = page.find("ETag: ");
  ASSERT_NE(tag, std::string::npos);
  const std::string etag = page.substr(tag + 6, page.find("\r\n", tag) - tag - 6);
  EXPECT_EQ(StatusIn(Ask("GET / HTTP/1.1\r\nIf-None-Match: " + etag)), 304);
}

TEST_F(WebServerTest, RejectsWhatItDoesNotServe) {
  Serve();
  for (const char* path : {"/../../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd",
                           "/page.css%00.html/x", "/api/v1/../../page.css", "//etc/passwd", "/.git/config"}) {
    const std::string answer = Ask(std::string("GET ") + path + " HTTP/1.1");
    EXPECT_EQ(StatusIn(answer), 404) << path << "\n" << answer;
  }
  for (const char* method : {"PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "PROPFIND", "FOO"}) {
    EXPECT_EQ(StatusIn(Ask(std::string(method) + " /api/v1/status HTTP/1.1")), 405) << method;
  }
  EXPECT_EQ(StatusIn(Ask("POST / HTTP/1.1\r\nContent-Length: 0")), 405);
  EXPECT_THAT(Ask("GET /api/v1/control-run HTTP/1.1"),
              AllOf(HasSubstr(" 405 "), HasSubstr("Allow: POST\r\n")));
  EXPECT_EQ(StatusIn(Ask("GET /api/v1/status HTTP/1.1\r\nHost: evil.example")), 403);
  EXPECT_EQ(StatusIn(Ask("GET /api/v1/status HTTP/1.1\r\nSec-Fetch-Site: cross-site")), 403);
  // Without a Host header at all.
  EXPECT_THAT(StatusIn(RawExchange(port(), "GET / HTTP/1.1\r\nConnection: close\r\n\r\n")), AnyOf(400, 403));
}

TEST_F(WebServerTest, RejectsWhatIsTooLarge) {
  Serve();
  const std::string long_path = "GET /" + std::string(100'000, 'a') + " HTTP/1.1";
  EXPECT_THAT(StatusIn(Ask(long_path)), AnyOf(414, 431));
  EXPECT_THAT(StatusIn(Ask("GET / HTTP/1.1\r\nX: " + std::string(100'000, 'a'))), AnyOf(413, 431));
  std::string many = "GET / HTTP/1.1";
  for (int i = 0; i < 5000; ++i) many += "\r\nX-" + std::to_string(i) + ": 1";
  EXPECT_THAT(StatusIn(Ask(many)), AnyOf(413, 431));
  // Told before it is sent, and found out while it is.
  EXPECT_EQ(StatusIn(Ask(ActionHead("admin-token", 1'000'000))), 413);
  EXPECT_EQ(StatusIn(Ask(ActionHead("admin-token", 200'000), std::string(200'000, 'a'))), 413)
      << "not a reset";
  const std::string chunked =
      "POST /api/v1/control-run HTTP/1.1\r\nContent-Type: application/json\r\nAtoll-Action: 1\r\n"
      "Transfer-Encoding: chunked";
  std::string body;
  for (int i = 0; i < 40; ++i) body += "400\r\n" + std::string(0x400, ' ') + "\r\n";
  EXPECT_EQ(StatusIn(Ask(chunked, body + "0\r\n\r\n")), 413);
  EXPECT_TRUE(coordinator_.admin_control.asked().empty());
}

TEST_F(WebServerTest, GarbageIsHarmless) {
  WebServerOptions options = Options();
  options.timeout = Seconds(0.5);
  Serve(options);
  std::string noise;
  for (int i = 0; i < 100'000; ++i) noise += static_cast<char>((i * 7919) >> 3);
  for (const std::string& bytes :
       {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 9),
        std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), noise, std::string("\r\n\r\n\r\n\r\n"),
        std::string("GET / HTTP/9.9\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n"),
        std::string("GET http://localhost/ HTTP/1.1\r\n") + std::string(300, '\0') + "\r\n\r\n",
        std::string("POST /api/v1/control-run HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
                    "chunked\r\n\r\nzz\r\n")}) {
    const FileDescriptor socket = ConnectTo(port());
    SendText(socket, bytes);
    ::shutdown(socket.get(), SHUT_WR);
    (void)ReadAll(socket);
  }
  EXPECT_EQ(StatusIn(Ask("GET / HTTP/1.1")), 200);
}

TEST_F(WebServerTest, ActionsTakeATokenAlsoOverTheSocket) {
  Serve();
  const std::string body = R"({"action":"PAUSE"})";
  EXPECT_EQ(StatusIn(Ask(ActionHead("", body.size()), body)), 401);
  EXPECT_EQ(StatusIn(Ask(ActionHead("guess", body.size()), body)), 401);
  EXPECT_EQ(StatusIn(Ask(ActionHead("observer-token", body.size()), body)), 403);
  const std::string foreign = ActionHead("admin-token", body.size()) + "\r\nOrigin: http://evil.example";
  EXPECT_EQ(StatusIn(Ask(foreign, body)), 403);
  EXPECT_TRUE(coordinator_.admin_control.asked().empty());
  EXPECT_EQ(StatusIn(Ask(ActionHead("admin-token", body.size()) + "\r\nOrigin: http://localhost", body)),
            200);
  ASSERT_EQ(coordinator_.admin_control.asked().size(), 1u);
  EXPECT_THAT(coordinator_.admin_control.asked()[0].caller.peer, HasSubstr("127.0.0.1:"));
}

TEST_F(WebServerTest, WhoDribblesIsHungUpOn) {
  WebServerOptions options = Options();
  options.timeout = Seconds(0.5);
  Serve(options);
  const auto begun = std::chrono::steady_clock::now();
  const FileDescriptor socket = ConnectTo(port());
  SendText(socket, "GET / HTTP/1.1\r\n");
  // Each byte would be in time for a limit on silence.
  std::thread dribble([&] {
    for (int i = 0; i < 60; ++i) {
      SendText(socket, "X");
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  EXPECT_EQ(ReadAll(socket), "");
  const auto took = std::chrono::steady_clock::now() - begun;
  ::shutdown(socket.get(), SHUT_RDWR);
  dribble.join();
  EXPECT_LT(took, std::chrono::milliseconds(2500));
  EXPECT_EQ(StatusIn(Ask("GET / HTTP/1.1")), 200);
}

TEST_F(WebServerTest, ClientsAreBoundedAndThoseThatWaitGetTheirTurn) {
  WebServerOptions options = Options();
  options.limits.connections = 4;
  options.limits.connections_per_address = 4;
  options.timeout = Seconds(0.5);
  Serve(options);
  std::vector<FileDescriptor> idle;
  for (int i = 0; i < 12; ++i) idle.push_back(ConnectTo(port()));
  // Once those that say nothing have been hung up on, there is room again.
  std::string answer;
  for (int i = 0; i < 50 && StatusIn(answer) != 200; ++i) {
    answer = Ask("GET / HTTP/1.1");
    if (StatusIn(answer) != 200) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(StatusIn(answer), 200);
}

TEST_F(WebServerTest, ASlowAnswerHoldsUpNobodyAndShutdownWaitsForIt) {
  std::atomic<bool> let_go{false};
  std::atomic<int> inside{0};
  coordinator_.admin_control.on_rounds = [&](FragmentId, Version, uint32_t) {
    ++inside;
    while (!let_go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return RoundListView{.rounds = {}, .head = Version(7)};
  };
  let_go = true;
  Serve();
  let_go = false;
  inside = 0;
  std::string slow;
  std::thread waits([&] { slow = Ask("GET /api/v1/rounds HTTP/1.1"); });
  while (inside == 0) std::this_thread::yield();
  EXPECT_EQ(StatusIn(Ask("GET /api/v1/status HTTP/1.1")), 200);
  EXPECT_EQ(StatusIn(Ask("GET / HTTP/1.1")), 200);
  std::thread shuts([&] { server_->Shutdown(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  let_go = true;
  shuts.join();
  waits.join();  // answered, or hung up on: not left
  server_.reset();
}

TEST_F(WebServerTest, AddressesAreRejectedWithAReason) {
  Serve();
  WebServerOptions options = Options();
  options.address = server_->address().ToString();
  EXPECT_THAT(std::string(WebServer::CheckAddress(options).message()), HasSubstr(options.address));
  options.address = "0.0.0.0:0";
  EXPECT_TRUE(absl::IsInvalidArgument(WebServer::CheckAddress(options)));
  EXPECT_THAT(std::string(WebServer::CheckAddress(options).message()), HasSubstr("--insecure-bind"));
  options.exposure = Exposure::kAnyInterface;
  EXPECT_TRUE(WebServer::CheckAddress(options).ok());
  options.address = "7604";
  EXPECT_TRUE(absl::IsInvalidArgument(WebServer::CheckAddress(options)));
}

class WebTlsTest : public WebServerTest {
 protected:
  /// A new pair under the names of the old.
  void MakeCertificate() {
    const Finished made =
        RunToEnd({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                  "-nodes", "-days", "2", "-subj", "/CN=atoll-test", "-addext", "subjectAltName=IP:127.0.0.1",
                  "-keyout", dir_.File("new.key"), "-out", dir_.File("new.crt")},
                 Seconds(60));
    ASSERT_EQ(made.exit_code, 0) << made.output;
    ASSERT_TRUE(RenameFile(dir_.File("new.key"), dir_.File("tls.key")).ok());
    ASSERT_TRUE(RenameFile(dir_.File("new.crt"), dir_.File("tls.crt")).ok());
  }
  int StatusOverTls(const std::string& ca_file) const {
    auto client =
        HttpClient::Create({.base_url = "https://" + server_->address().ToString(), .ca_file = ca_file});
    if (!client.ok()) return -1;
    const auto reply = (*client)->Exchange({.path = "/api/v1/session"});
    return reply.ok() ? reply->status : 0;
  }
  const TestDir dir_;
};

TEST_F(WebTlsTest, SpeaksHttpsAndTakesANewCertificateWithoutAPause) {
  MakeCertificate();
  WebServerOptions options = Options();
  options.certificate_file = dir_.File("tls.crt");
  options.key_file = dir_.File("tls.key");
  options.look_at_files = Seconds(0.1);
  options.timeout = Seconds(1);
  Serve(options);
  EXPECT_THAT(server_->url(), HasSubstr("https://127.0.0.1:"));
  const std::string first_ca = dir_.File("first.crt");
  ASSERT_TRUE(WriteFileAtomically(first_ca, *ReadFile(options.certificate_file)).ok());
  EXPECT_EQ(StatusOverTls(first_ca), 200);
  EXPECT_EQ(StatusIn(Ask("GET / HTTP/1.1")), 0);  // no plain text

  MakeCertificate();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (StatusOverTls(options.certificate_file) != 200 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(StatusOverTls(options.certificate_file), 200);
  EXPECT_EQ(StatusOverTls(first_ca), 0);

  // What is no certificate is not taken.
  ASSERT_TRUE(
      WriteFileAtomically(options.certificate_file + ".good", *ReadFile(options.certificate_file)).ok());
  ASSERT_TRUE(WriteFileAtomically(options.certificate_file, "broken").ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  EXPECT_EQ(StatusOverTls(options.certificate_file + ".good"), 200);
}

TEST_F(WebTlsTest, ACertificateMakesOtherAddressesFineAndABrokenOneIsSaid) {
  WebServerOptions options = Options();
  options.certificate_file = dir_.File("tls.crt");
  options.key_file = dir_.File("tls.key");
  options.address = "0.0.0.0:0";
  EXPECT_TRUE(WebServer::CheckAddress(options).ok());
  EXPECT_FALSE(WebServer::Start(options, &coordinator_, &clock_, Logger()).ok());  // no such files
  ASSERT_TRUE(WriteFileAtomically(options.certificate_file, "x").ok());
  ASSERT_TRUE(WriteFileAtomically(options.key_file, "y").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(WebServer::Start(options, &coordinator_, &clock_, Logger()).status()));
}

}  // namespace
}  // namespace atl

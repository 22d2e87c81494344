// Calls to a real TLS server: every answer that an API server gives when something is wrong.
#include "server/launch/kubernetes_api.h"

#include "common/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/launch/api_server.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Notes how long it should have slept, and does not.
class NotingSleeper final : public Sleeper {
 public:
  bool SleepFor(Duration duration) override {
    slept.push_back(duration);
    return !interrupted;
  }
  std::vector<Duration> slept;
  bool interrupted = false;
};

class KubernetesApiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = ApiServer::Start();
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    Connect(server_->Options());
  }
  void Connect(const KubernetesApiOptions& options) {
    auto api = KubernetesApi::Create(options, &sleeper_);
    ASSERT_TRUE(api.ok()) << api.status();
    api_ = *std::move(api);
  }

  absl::StatusOr<std::string> GetScale() {
    return api_->Call({.path = "/apis/apps/v1/namespaces/ml/statefulsets/train-worker/scale",
                       .verb = "get",
                       .resource = "statefulsets/scale",
                       .api_group = "apps",
                       .name_space = "ml"});
  }
  std::string Failure() { return std::string(GetScale().status().message()); }
  size_t Asked() const { return server_->Requests().size(); }

  std::unique_ptr<ApiServer> server_;
  NotingSleeper sleeper_;
  std::unique_ptr<KubernetesApi> api_;
};

TEST_F(KubernetesApiTest, SendsTheTokenAndGetsTheAnswer) {
  const auto answer = GetScale();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(*answer, HasSubstr("\"Scale\""));
  ASSERT_EQ(Asked(), 1u);
  EXPECT_EQ(server_->Requests()[0]["authorization"], "Bearer secret-1");
  EXPECT_EQ(*api_->OwnNamespace(), "ml");
}

TEST_F(KubernetesApiTest, ARotatedTokenIsUsedAtOnce) {
  ASSERT_TRUE(GetScale().ok());
  server_->AcceptTokens("secret-2");
  server_->SetToken("secret-2\n");
  ASSERT_TRUE(GetScale().ok());
  EXPECT_EQ(server_->Requests("GET").back()["authorization"], "Bearer secret-2");
  EXPECT_EQ(Asked(), 2u);
}

TEST_F(KubernetesApiTest, ARejectedTokenIsReadOnceMore) {
  server_->AddFault({{"status", 401}, {"body", "{\"message\": \"Unauthorized\"}"}});
  EXPECT_TRUE(GetScale().ok());
  EXPECT_EQ(Asked(), 2u);
  server_->AcceptTokens("another");
  const absl::Status rejected = GetScale().status();
  EXPECT_TRUE(absl::IsUnauthenticated(rejected)) << rejected;
  EXPECT_THAT(std::string(rejected.message()),
              AllOf(HasSubstr("answered 401"), HasSubstr(server_->Options().credentials)));
  EXPECT_EQ(Asked(), 4u);
  EXPECT_TRUE(sleeper_.slept.empty());
}

TEST_F(KubernetesApiTest, TheTokenIsInNoError) {
  for (const int status : {400, 401, 401, 403, 404, 422}) {
    server_->AddFault({{"status", status}, {"body", "{\"message\": \"you said Bearer secret-1\"}"}});
  }
  for (int i = 0; i < 5; ++i) EXPECT_THAT(Failure(), AllOf(HasSubstr("[token]"), Not(HasSubstr("secret-1"))));
  server_->AddFault({{"status", 400}, {"body", "not JSON, \n secret-1"}});
  EXPECT_THAT(Failure(), AllOf(HasSubstr("not JSON,   [token]"), Not(HasSubstr("secret-1"))));
}

TEST_F(KubernetesApiTest, SaysWhichPermissionIsMissing) {
  server_->Forbid("get statefulsets/scale");
  const absl::Status rejected = GetScale().status();
  EXPECT_TRUE(absl::IsPermissionDenied(rejected));
  EXPECT_THAT(std::string(rejected.message()),
              AllOf(HasSubstr("verb 'get'"), HasSubstr("'statefulsets/scale'"), HasSubstr("apiGroup 'apps'"),
                    HasSubstr("namespace ml"), HasSubstr("cannot get resource")));
  EXPECT_EQ(Asked(), 1u);
}

TEST_F(KubernetesApiTest, RepeatsAConflict) {
  server_->AddFault({{"status", 409}, {"body", "{\"message\": \"the object has been modified\"}"}});
  server_->AddFault({{"status", 409}});
  EXPECT_TRUE(GetScale().ok());
  EXPECT_EQ(Asked(), 3u);
  EXPECT_EQ(sleeper_.slept.size(), 2u);
}

TEST_F(KubernetesApiTest, WaitsAsLongAsABusyServerAsks) {
  server_->AddFault({{"status", 429}, {"headers", {{"Retry-After", "7"}}}});
  server_->AddFault({{"status", 429}});
  EXPECT_TRUE(GetScale().ok());
  ASSERT_EQ(sleeper_.slept.size(), 2u);
  EXPECT_GE(sleeper_.slept[0], Seconds(7));
  EXPECT_LT(sleeper_.slept[0], Seconds(8));
  EXPECT_LT(sleeper_.slept[1], Seconds(1));
}

TEST_F(KubernetesApiTest, DoesNotWaitForeverForABusyServer) {
  server_->AddFault({{"status", 429}, {"headers", {{"Retry-After", "3600"}}}});
  const absl::Status rejected = GetScale().status();
  EXPECT_TRUE(absl::IsResourceExhausted(rejected));
  EXPECT_THAT(std::string(rejected.message()), HasSubstr("1h 00m"));
  EXPECT_TRUE(sleeper_.slept.empty());
}

TEST_F(KubernetesApiTest, RepeatsWhatTheServerCouldNotDoAndThenGivesUp) {
  for (const int status : {500, 502, 503, 504}) server_->AddFault({{"status", status}});
  EXPECT_TRUE(GetScale().ok());
  EXPECT_EQ(Asked(), 5u);
  for (int i = 0; i < 5; ++i)
    server_->AddFault({{"status", 503}, {"body", "{\"message\": \"etcd has no leader\"}"}});
  const absl::Status failed = GetScale().status();
  EXPECT_TRUE(absl::IsUnavailable(failed));
  EXPECT_THAT(std::string(failed.message()),
              AllOf(HasSubstr("etcd has no leader"), HasSubstr("given up after 5 attempts")));
}

TEST_F(KubernetesApiTest, ABrokenConnectionIsTriedAgain) {
  server_->AddFault({{"drop", true}});
  server_->AddFault({{"drop", true}});
  EXPECT_TRUE(GetScale().ok());
}

TEST_F(KubernetesApiTest, AServerThatDoesNotAnswerIsGivenUp) {
  KubernetesApiOptions options = server_->Options();
  options.timeout = Seconds(0.2);
  options.attempts = 2;
  Connect(options);
  server_->AddFault({{"delay", 1}});
  server_->AddFault({{"delay", 1}});
  const absl::Status failed = GetScale().status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(failed)) << failed;
  EXPECT_THAT(std::string(failed.message()), HasSubstr("given up after 2 attempts"));
}

TEST_F(KubernetesApiTest, AnInterruptedWaitEndsTheCall) {
  sleeper_.interrupted = true;
  server_->AddFault({{"status", 503}});
  EXPECT_TRUE(absl::IsCancelled(GetScale().status()));
}

TEST_F(KubernetesApiTest, BelievesOnlyTheClustersAuthority) {
  ASSERT_TRUE(server_->MakeCertificate("stranger", "IP:127.0.0.1").ok());
  const auto stranger = ReadFile(server_->Credential("../stranger.crt"));
  ASSERT_TRUE(stranger.ok());
  ASSERT_TRUE(WriteFileAtomically(server_->Credential("ca.crt"), *stranger).ok());
  Connect(server_->Options());
  EXPECT_TRUE(absl::IsUnauthenticated(GetScale().status())) << GetScale().status();
  ASSERT_TRUE(RemoveFile(server_->Credential("ca.crt")).ok());
  Connect(server_->Options());
  EXPECT_TRUE(absl::IsUnauthenticated(GetScale().status()));
  EXPECT_EQ(Asked(), 0u);  // the token went nowhere
}

TEST_F(KubernetesApiTest, BelievesOnlyTheNameThatItAskedFor) {
  KubernetesApiOptions options = server_->Options();
  options.host = "localhost";  // the certificate is for 127.0.0.1
  Connect(options);
  EXPECT_TRUE(absl::IsUnauthenticated(GetScale().status())) << GetScale().status();
  EXPECT_EQ(Asked(), 0u);
}

TEST_F(KubernetesApiTest, FollowsNoRedirect) {
  server_->AddFault({{"status", 302}, {"headers", {{"Location", "/elsewhere"}}}});
  EXPECT_FALSE(GetScale().ok());
  EXPECT_EQ(Asked(), 1u);
}

TEST_F(KubernetesApiTest, NobodyThere) {
  KubernetesApiOptions options = server_->Options();
  options.port = "1";
  options.attempts = 2;
  Connect(options);
  EXPECT_TRUE(absl::IsUnavailable(GetScale().status()));
  options.host = "";
  EXPECT_TRUE(absl::IsInvalidArgument(KubernetesApi::Create(options, &sleeper_).status()));
}

TEST_F(KubernetesApiTest, ATokenThatIsNoneIsNotSent) {
  for (const char* token : {"", " \n", "two\nlines", "with space"}) {
    server_->SetToken(token);
    EXPECT_TRUE(absl::IsUnauthenticated(GetScale().status())) << token;
  }
  ASSERT_TRUE(RemoveFile(server_->Credential("token")).ok());
  EXPECT_THAT(Failure(), HasSubstr("/token"));
  EXPECT_TRUE(absl::IsUnauthenticated(KubernetesApi::Create(server_->Options(), &sleeper_).status()));
  EXPECT_EQ(Asked(), 0u);
}

}  // namespace
}  // namespace atl

// The server around the services: addresses, health, reflection, shutdown.
#include "common/bind_address.h"
#include "gmock/gmock.h"
#include "tests/server/rpc/generic_calls.h"
#include "tests/server/rpc/rpc_fixture.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ServerTest : public RpcFixture {};

TEST_F(ServerTest, ReportsThePortsThatItGot) {
  Serve();
  const auto data = ParseBindAddress(server_->data_address());
  ASSERT_TRUE(data.ok());
  EXPECT_NE(data->port, 0);
  EXPECT_NE(server_->data_address(), server_->admin_address());
}

TEST_F(ServerTest, AnswersTheHealthServiceOnBothPorts) {
  Serve();
  EXPECT_EQ(HealthOf(data_channel_, "atoll.v1.Coordinator"), 1);
  EXPECT_EQ(HealthOf(data_channel_, ""), 1);
  EXPECT_EQ(HealthOf(admin_channel_, "atoll.v1.Admin"), 1);
  EXPECT_EQ(HealthOf(data_channel_, "atoll.v1.Admin"), -1);  // is not served there
  server_->SetNotServing();
  EXPECT_EQ(HealthOf(data_channel_, "atoll.v1.Coordinator"), 2);
  EXPECT_EQ(HealthOf(admin_channel_, "atoll.v1.Admin"), 2);
}

TEST_F(ServerTest, AnswersReflectionOnBothPorts) {
  Serve();
  EXPECT_THAT(ServicesOf(data_channel_),
              AllOf(HasSubstr("atoll.v1.Coordinator"), HasSubstr("grpc.health.v1.Health")));
  EXPECT_THAT(ServicesOf(admin_channel_), HasSubstr("atoll.v1.Admin"));
}

TEST_F(ServerTest, APortInUseIsNamedAndNotShared) {
  Serve();
  RpcServerOptions second = Options();
  second.data_address = server_->data_address();
  const auto data = RpcServer::Start(second, &coordinator_, &clock_, Logger());
  ASSERT_TRUE(absl::IsUnavailable(data.status())) << data.status();
  EXPECT_THAT(std::string(data.status().message()),
              AllOf(HasSubstr(server_->data_address()), HasSubstr("in use")));
  second = Options();
  second.admin_address = server_->admin_address();
  EXPECT_TRUE(absl::IsUnavailable(RpcServer::Start(second, &coordinator_, &clock_, Logger()).status()));
}

TEST_F(ServerTest, OtherMachinesAreLetInOnlyWhenAskedFor) {
  RpcServerOptions options = Options();
  options.data_address = "0.0.0.0:0";
  const auto rejected = RpcServer::Start(options, &coordinator_, &clock_, Logger());
  ASSERT_TRUE(absl::IsInvalidArgument(rejected.status()));
  EXPECT_THAT(std::string(rejected.status().message()),
              AllOf(HasSubstr("0.0.0.0:0"), HasSubstr("--insecure-bind"), HasSubstr("--tls-cert")));
  EXPECT_EQ(RpcServer::CheckAddress(options.data_address, options), rejected.status());
  options.data_address = "127.0.0.1:0";
  options.admin_address = "[::]:0";
  EXPECT_TRUE(absl::IsInvalidArgument(RpcServer::Start(options, &coordinator_, &clock_, Logger()).status()));
  options.admin_address = "0.0.0.0:0";
  options.exposure = Exposure::kAnyInterface;
  EXPECT_TRUE(RpcServer::Start(options, &coordinator_, &clock_, Logger()).ok());
}

TEST_F(ServerTest, ABadAddressIsRejected) {
  RpcServerOptions options = Options();
  options.data_address = "7600";
  EXPECT_TRUE(absl::IsInvalidArgument(RpcServer::Start(options, &coordinator_, &clock_, Logger()).status()));
}

TEST_F(ServerTest, ShutdownIsPromptWhilePullsAndWatchersWait) {
  RpcServerOptions options = Options();
  options.shutdown_grace = Seconds(30);  // nothing here may need it
  Serve(options);
  v1::PullRequest request;
  *request.mutable_worker() = Self();
  const auto pull_context = Context();
  const auto pull = data_->Pull(pull_context.get(), request);
  const auto watch_context = Context();
  const auto watch = data_->WatchRun(watch_context.get(), v1::WatchRunRequest());
  ASSERT_TRUE(
      Eventually([&] { return coordinator_.waiting_pulls() == 1 && coordinator_.subscriptions() == 1; }));

  const auto begun = std::chrono::steady_clock::now();
  coordinator_.Shutdown();
  server_->Shutdown();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));

  v1::PullChunk chunk;
  EXPECT_FALSE(pull->Read(&chunk));
  EXPECT_EQ(ReasonIn(pull->Finish()), "SHUTTING_DOWN");
  v1::RunEvent event;
  EXPECT_FALSE(watch->Read(&event));
  EXPECT_EQ(ReasonIn(watch->Finish()), "SHUTTING_DOWN");
  EXPECT_EQ(coordinator_.subscriptions(), 0u);
}

TEST_F(ServerTest, ShutdownCancelsWhatDoesNotEnd) {
  Serve();  // a grace of 0.2 s
  v1::PullRequest request;
  *request.mutable_worker() = Self();
  const auto pull_context = Context();
  const auto pull = data_->Pull(pull_context.get(), request);  // which the coordinator never answers
  ASSERT_TRUE(Eventually([&] { return coordinator_.waiting_pulls() == 1; }));
  server_->Shutdown();
  EXPECT_EQ(coordinator_.waiting_pulls(), 0u);
  v1::PullChunk chunk;
  EXPECT_FALSE(pull->Read(&chunk));
  EXPECT_FALSE(pull->Finish().ok());
  server_->Shutdown();  // again: nothing
}

TEST_F(ServerTest, AnUploadThatStandsStillIsToldOfTheShutdown) {
  RpcServerOptions options = Options();
  options.shutdown_grace = Seconds(30);  // nothing here may need it
  Serve(options);
  const auto context = Context();
  v1::PushReply reply;
  const auto push = data_->Push(context.get(), &reply);  // which never goes on
  ASSERT_TRUE(push->Write(PushHeaderOf(6)));
  ASSERT_TRUE(Eventually([&] { return coordinator_.open_pushes == 1; }));
  const auto begun = std::chrono::steady_clock::now();
  coordinator_.Shutdown();
  server_->Shutdown();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
  EXPECT_EQ(coordinator_.open_pushes, 0);
  EXPECT_EQ(ReasonIn(push->Finish()), "SHUTTING_DOWN");
}

TEST_F(ServerTest, AnIdleClientNeitherHoldsUpTheShutdownNorIsItsNextCallCancelled) {
  RpcServerOptions options = Options();
  options.shutdown_grace = Seconds(30);
  Serve(options);
  v1::HeartbeatRequest beat;
  *beat.mutable_worker() = Self();
  v1::HeartbeatReply reply;
  const auto first = Context();
  static_cast<void>(data_->Heartbeat(first.get(), beat, &reply));  // now there is a connection
  const auto begun = std::chrono::steady_clock::now();
  coordinator_.Shutdown();
  server_->Shutdown();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(4));
  for (int i = 0; i < 3; ++i) {
    const auto context = Context();
    const grpc::Status status = data_->Heartbeat(context.get(), beat, &reply);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
  }
}

}  // namespace
}  // namespace atl

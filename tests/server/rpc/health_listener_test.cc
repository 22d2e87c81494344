// The port for a kubelet: what it says, and that it says nothing else.
#include "server/rpc/health_listener.h"

#include "common/bind_address.h"
#include "gmock/gmock.h"
#include "tests/server/rpc/generic_calls.h"
#include "tests/server/rpc/rpc_fixture.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int kServing = 1;
constexpr int kNotServing = 2;

class HealthListenerTest : public RpcFixture {
 protected:
  void Listen() {
    auto health = HealthListener::Start("127.0.0.1:0");
    ASSERT_TRUE(health.ok()) << health.status();
    health_ = *std::move(health);
    channel_ = grpc::CreateChannel(health_->address(), grpc::InsecureChannelCredentials());
  }
  std::unique_ptr<HealthListener> health_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(HealthListenerTest, IsAliveBeforeItServes) {
  Listen();
  EXPECT_EQ(HealthOf(channel_, "live"), kServing);
  EXPECT_EQ(HealthOf(channel_, ""), kNotServing);
  EXPECT_EQ(HealthOf(channel_, "atoll.v1.Coordinator"), kNotServing);
  health_->SetServing(true);
  EXPECT_EQ(HealthOf(channel_, ""), kServing);
  EXPECT_EQ(HealthOf(channel_, "atoll.v1.Coordinator"), kServing);
  health_->SetServing(false);
  EXPECT_EQ(HealthOf(channel_, ""), kNotServing);
  EXPECT_EQ(HealthOf(channel_, "live"), kServing);
  EXPECT_EQ(HealthOf(channel_, "atoll.v1.Admin"), -1);
}

TEST_F(HealthListenerTest, ServesNothingElseWhateverOtherPortsServe) {
  Serve();  // asks for reflection, which would be in every server that is built after it
  Listen();
  ASSERT_THAT(ServicesOf(data_channel_), HasSubstr("atoll.v1.Coordinator"));
  EXPECT_EQ(ServicesOf(channel_), "");
  std::string answer;
  for (const char* method :
       {"/atoll.v1.Coordinator/Join", "/atoll.v1.Admin/GetStatus", "/grpc.channelz.v1.Channelz/GetServers"}) {
    EXPECT_EQ(GenericCall(channel_, method, "", &answer).error_code(), grpc::StatusCode::UNIMPLEMENTED)
        << method;
  }
}

TEST_F(HealthListenerTest, ALargeQuestionIsRejected) {
  Listen();
  std::string answer;
  const grpc::Status status =
      GenericCall(channel_, "/grpc.health.v1.Health/Check", std::string(64 << 10, 'x'), &answer);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
}

TEST_F(HealthListenerTest, APortInUseIsNamed) {
  Listen();
  const auto second = HealthListener::Start(health_->address());
  ASSERT_TRUE(absl::IsUnavailable(second.status())) << second.status();
  EXPECT_THAT(std::string(second.status().message()),
              AllOf(HasSubstr(health_->address()), HasSubstr("in use")));
  EXPECT_TRUE(absl::IsInvalidArgument(HealthListener::Start("7603").status()));
  EXPECT_EQ(HealthListener::CheckAddress(health_->address()), second.status());
}

}  // namespace
}  // namespace atl

// An operator at a real coordinator, over sockets: nothing is faked but the disk and the time.
#include "gmock/gmock.h"
#include "protos/config/run_config_codec.h"
#include "tests/server/rpc/configured_run.h"
#include "tests/server/rpc/rpc_fixture.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

const RunConfigCodec kCodec;

class OperatorTest : public RpcFixture {
 protected:
  OperatorTest() : run_(ConfiguredRun(), {.config_codec = &kCodec}) {}
  ~OperatorTest() override { server_.reset(); }
  void SetUp() override {
    workers_ = run_.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
    Serve(Options(), &run_.coordinator());
  }
  TestRun run_;
  std::vector<MemberRef> workers_;
};

TEST_F(OperatorTest, PausesAndItIsOnRecord) {
  EventCatcher events(&run_.coordinator());
  v1::ControlRunRequest request;
  request.set_action(v1::ControlRunRequest::PAUSE);
  v1::ControlRunReply reply;
  ASSERT_TRUE(admin_->ControlRun(Context().get(), request, &reply).ok());
  EXPECT_EQ(reply.state(), v1::RUN_STATE_PAUSED);
  v1::GetStatusReply status;
  ASSERT_TRUE(admin_->GetStatus(Context().get(), {}, &status).ok());
  EXPECT_EQ(status.state(), v1::RUN_STATE_PAUSED);
  EXPECT_THAT(status.state_reason(), HasSubstr("paused by someone (127.0.0.1:"));
  EXPECT_THAT(events.WaitFor(EventKind::kAdminAction)->message, HasSubstr("pause: the run is paused"));
  const grpc::Status again = admin_->ControlRun(Context().get(), request, &reply);
  EXPECT_EQ(again.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(OperatorTest, SetsAndReadsConfigurations) {
  v1::SetConfigRequest request;
  v1::Setting* setting = request.add_settings();
  setting->set_path("round.quorum");
  setting->set_value("0.5");
  v1::SetConfigReply reply;
  ASSERT_TRUE(admin_->SetConfig(Context().get(), request, &reply).ok());
  EXPECT_EQ(reply.config().version(), 2u);
  EXPECT_EQ(reply.config().config().round().quorum(), 0.5);
  v1::ListConfigsReply list;
  ASSERT_TRUE(admin_->ListConfigs(Context().get(), {}, &list).ok());
  EXPECT_EQ(list.configs_size(), 2);
  setting->set_value("7");
  const grpc::Status rejected = admin_->SetConfig(Context().get(), request, &reply);
  EXPECT_EQ(rejected.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(rejected.error_message(), HasSubstr("round.quorum"));
}

TEST_F(OperatorTest, BansAWorkerWhichIsThenRejected) {
  v1::ControlWorkerRequest request;
  request.set_worker("a");
  request.set_action(v1::ControlWorkerRequest::BAN);
  v1::ControlWorkerReply reply;
  ASSERT_TRUE(admin_->ControlWorker(Context().get(), request, &reply).ok());
  v1::JoinReply joined;
  const grpc::Status rejected = data_->Join(Context().get(), JoinAs("a"), &joined);
  EXPECT_EQ(rejected.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(ReasonIn(rejected), "BANNED");
}

TEST_F(OperatorTest, MakesVerifiesAndRestoresACheckpoint) {
  for (const MemberRef& worker : workers_) {
    ASSERT_TRUE(run_.Push(worker, 0, Fill([](size_t) { return 0.01F; })).ok());
  }
  ASSERT_EQ(run_.Pull(workers_[0], 0)->snapshot->version, Version(1));
  run_.WaitForStored(1);
  v1::VerifyRequest all;
  const auto context = Context();
  const auto stream = admin_->Verify(context.get(), all);
  v1::VerifyProgress progress;
  int verified = 0;
  while (stream->Read(&progress)) {
    EXPECT_NE(progress.verdict(), v1::VerifyProgress::DIFFERENT) << progress.message();
    ++verified;
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_GE(verified, 2);
  v1::CreateCheckpointRequest create;
  create.set_name("first");
  v1::CreateCheckpointReply made;
  const grpc::Status created = admin_->CreateCheckpoint(Context().get(), create, &made);
  ASSERT_TRUE(created.ok()) << created.error_message();
  EXPECT_EQ(admin_->CreateCheckpoint(Context().get(), create, &made).error_code(),
            grpc::StatusCode::ALREADY_EXISTS);
  v1::RestoreCheckpointRequest restore;
  restore.set_name("nothing");
  v1::RestoreCheckpointReply restored;
  EXPECT_EQ(admin_->RestoreCheckpoint(Context().get(), restore, &restored).error_code(),
            grpc::StatusCode::NOT_FOUND);
  restore.set_name("first");
  const grpc::Status done = admin_->RestoreCheckpoint(Context().get(), restore, &restored);
  ASSERT_TRUE(done.ok()) << done.error_message();
  EXPECT_EQ(restored.versions(0), 2u) << "the head never goes back";
  EXPECT_EQ(ReasonOf(run_.Heartbeat(workers_[0]).status()), RejectionReason::kWrongEpoch);
}

}  // namespace
}  // namespace atl

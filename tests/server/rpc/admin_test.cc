// The admin port over sockets: what is asked arrives, what comes back is complete, what is wrong is refused.
#include <atomic>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "server/rpc/decode_admin.h"
#include "server/rpc/peer.h"
#include "tests/server/rpc/rpc_fixture.h"

namespace atl {
namespace {

using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class AdminTest : public RpcFixture {
 protected:
  static std::unique_ptr<grpc::ClientContext> As(const std::string& user) {
    auto context = Context();
    context->AddMetadata("atoll-user", user);
    return context;
  }
  std::string LastAsked() const {
    const auto asked = coordinator_.admin_control.asked();
    return asked.empty() ? "" : asked.back().what;
  }
};

TEST_F(AdminTest, ActionsArriveWithWhoAskedAndAnswerWhatWillHappen) {
  coordinator_.status_view.state = RunState::kPaused;
  Serve();
  v1::ControlRunRequest run;
  run.set_action(v1::ControlRunRequest::PAUSE);
  run.set_reason("new disks");
  v1::ControlRunReply paused;
  ASSERT_TRUE(admin_->ControlRun(As("ann").get(), run, &paused).ok());
  EXPECT_EQ(paused.message(), "as you say");
  EXPECT_EQ(paused.state(), v1::RUN_STATE_PAUSED);
  const auto asked = coordinator_.admin_control.asked();
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].caller.user, "ann");
  EXPECT_THAT(asked[0].caller.peer, StartsWith("127.0.0.1:"));
  EXPECT_EQ(asked[0].what, "run 1 new disks");

  v1::ControlWorkerRequest worker;
  worker.set_worker("w1");
  worker.set_action(v1::ControlWorkerRequest::RESTART);
  worker.set_at_once(true);
  worker.set_reason("slow");
  v1::ControlWorkerReply told;
  ASSERT_TRUE(admin_->ControlWorker(Context().get(), worker, &told).ok());
  EXPECT_EQ(told.message(), "as you say");
  EXPECT_EQ(LastAsked(), "worker w1 2 at once slow");
  EXPECT_EQ(coordinator_.admin_control.asked().back().caller.user, "");

  v1::ScaleWorkersRequest scale;
  scale.set_add(2);
  v1::ScaleWorkersReply scaled;
  ASSERT_TRUE(admin_->ScaleWorkers(Context().get(), scale, &scaled).ok());
  EXPECT_EQ(LastAsked(), "add 2");
  EXPECT_EQ(scaled.target(), 4u);
  EXPECT_THAT(scaled.names(), ElementsAre("w-0", "w-1"));
  scale.set_target(0);
  ASSERT_TRUE(admin_->ScaleWorkers(Context().get(), scale, &scaled).ok());
  EXPECT_EQ(LastAsked(), "scale to 0") << "0 is a size";
}

TEST_F(AdminTest, WhatNoToolOfOursSendsIsRejectedByField) {
  Serve();
  v1::ControlRunRequest run;
  v1::ControlRunReply ran;
  const auto rejected = [&](const grpc::Status& status, const std::string& text) {
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(text));
  };
  rejected(admin_->ControlRun(Context().get(), run, &ran), "action: 0");
  run.set_action(static_cast<v1::ControlRunRequest::Action>(9));
  rejected(admin_->ControlRun(Context().get(), run, &ran), "action: 9");
  run.set_action(v1::ControlRunRequest::STOP);
  run.set_reason(std::string(300, 'x'));
  rejected(admin_->ControlRun(Context().get(), run, &ran), "reason: 300 bytes");
  v1::ControlWorkerRequest worker;
  v1::ControlWorkerReply told;
  rejected(admin_->ControlWorker(Context().get(), worker, &told), "worker: is empty");
  worker.set_worker("w1");
  rejected(admin_->ControlWorker(Context().get(), worker, &told), "action: 0");
  v1::SetConfigRequest set;
  for (int i = 0; i < 101; ++i) set.add_settings();
  v1::SetConfigReply reply;
  rejected(admin_->SetConfig(Context().get(), set, &reply), "settings: 101");
  EXPECT_TRUE(coordinator_.admin_control.asked().empty());
}

TEST_F(AdminTest, ARejectionArrivesAsItWasGiven) {
  coordinator_.admin_control.answer = Reject(RejectionReason::kStorageFull, "the disk is full");
  Serve();
  v1::ControlRunRequest run;
  run.set_action(v1::ControlRunRequest::PAUSE);
  v1::ControlRunReply ran;
  const grpc::Status status = admin_->ControlRun(Context().get(), run, &ran);
  EXPECT_EQ(status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonIn(status), "STORAGE_FULL");
  coordinator_.admin_control.answer = absl::FailedPreconditionError("not now");
  v1::RestoreCheckpointReply restored;
  EXPECT_EQ(admin_->RestoreCheckpoint(Context().get(), {}, &restored).error_code(),
            StatusCode::FAILED_PRECONDITION);
  v1::DeleteCheckpointReply deleted;
  EXPECT_EQ(admin_->DeleteCheckpoint(Context().get(), {}, &deleted).error_code(),
            StatusCode::FAILED_PRECONDITION);
  v1::CreateCheckpointReply created;
  EXPECT_EQ(admin_->CreateCheckpoint(Context().get(), {}, &created).error_message(), "not now");
}

TEST_F(AdminTest, ConfigurationsTravelWhole) {
  v1::RunConfig config;
  config.mutable_run()->set_name("tiny");
  coordinator_.admin_control.configs = {
      {.version = 1, .bytes = "", .unix_ns = 5, .author = "start", .changes = {}},
      {.version = 2,
       .bytes = config.SerializeAsString(),
       .unix_ns = 6,
       .author = "ann",
       .changes = {"round.quorum: 1 -> 0.5"}}};
  Serve();
  v1::SetConfigRequest set;
  set.set_expected_version(1);
  set.set_dry_run(true);
  v1::Setting* setting = set.add_settings();
  setting->set_path("round.quorum");
  setting->set_value("0.5");
  v1::SetConfigReply reply;
  ASSERT_TRUE(admin_->SetConfig(Context().get(), set, &reply).ok());
  EXPECT_EQ(LastAsked(), "set round.quorum=0.5 expecting 1 dry");
  EXPECT_EQ(reply.config().config().run().name(), "tiny");
  EXPECT_THAT(reply.config().changes(), ElementsAre("round.quorum: 1 -> 0.5"));
  v1::ListConfigsReply list;
  ASSERT_TRUE(admin_->ListConfigs(Context().get(), {}, &list).ok());
  ASSERT_EQ(list.configs_size(), 2);
  EXPECT_EQ(list.configs(1).author(), "ann");
  EXPECT_EQ(list.configs(1).unix_nanos(), 6);
}

TEST_F(AdminTest, CheckpointsAndTheLauncherAreShown) {
  coordinator_.admin_control.checkpoints = {{.name = "good",
                                             .epoch = Epoch(0xfedcba9876543210),
                                             .versions = {Version(7)},
                                             .committed_tokens = 8,
                                             .created_unix_ns = 9,
                                             .bytes = 10,
                                             .shared_bytes = 6,
                                             .automatic = true,
                                             .path = "/d/checkpoints/good",
                                             .damage = "meta.sst: short"}};
  LauncherView& launcher = coordinator_.admin_control.launcher;
  launcher.kind = "process";
  launcher.target = 1;
  LaunchedWorker& worker = launcher.workers.emplace_back();
  worker.name = "w-0";
  worker.state = LaunchedWorker::State::kWaiting;
  worker.restarts = 3;
  worker.next_start = Seconds(1.5);
  for (const auto state : {LaunchedWorker::State::kRunning, LaunchedWorker::State::kDraining,
                           LaunchedWorker::State::kStopping, LaunchedWorker::State::kDrained}) {
    launcher.workers.push_back({.name = "w-more", .state = state});
  }
  Serve();
  v1::ListCheckpointsRequest checked;
  checked.set_check(true);
  v1::ListCheckpointsReply list;
  ASSERT_TRUE(admin_->ListCheckpoints(Context().get(), checked, &list).ok());
  EXPECT_EQ(LastAsked(), "checkpoint list checked");
  ASSERT_EQ(list.checkpoints_size(), 1);
  EXPECT_EQ(list.checkpoints(0).epoch(), 0xfedcba9876543210u);
  EXPECT_EQ(list.checkpoints(0).damage(), "meta.sst: short");
  EXPECT_TRUE(list.checkpoints(0).automatic());
  v1::RestoreCheckpointRequest restore;
  restore.set_name("good");
  v1::RestoreCheckpointReply restored;
  ASSERT_TRUE(admin_->RestoreCheckpoint(Context().get(), restore, &restored).ok());
  EXPECT_EQ(LastAsked(), "checkpoint restore good");
  EXPECT_THAT(restored.versions(), ElementsAre(9u));
  v1::LauncherStatus status;
  ASSERT_TRUE(admin_->GetLauncher(Context().get(), {}, &status).ok());
  EXPECT_EQ(status.kind(), "process");
  EXPECT_EQ(status.workers(0).state(), "waiting");
  EXPECT_EQ(status.running(), 3) << "all that have a process";
  EXPECT_DOUBLE_EQ(status.workers(0).next_start_in_s(), 1.5);
}

TEST_F(AdminTest, OneWorkerIsFoundByNameAlsoWhenItHasLeft) {
  WorkerView& worker = coordinator_.worker_views.emplace_back();
  worker.name = "a";
  worker.state = "left";
  worker.banned = true;
  worker.pending_command = WorkerCommand::kDrain;
  coordinator_.worker_views.emplace_back().name = "b";
  Serve();
  v1::ListWorkersRequest request;
  request.set_worker("a");
  v1::ListWorkersReply reply;
  ASSERT_TRUE(admin_->ListWorkers(Context().get(), request, &reply).ok());
  ASSERT_EQ(reply.workers_size(), 1);
  EXPECT_TRUE(reply.workers(0).banned());
  EXPECT_EQ(reply.workers(0).pending_command(), v1::COMMAND_DRAIN);
  coordinator_.worker_views[0].pending_command = static_cast<WorkerCommand>(112);
  ASSERT_TRUE(admin_->ListWorkers(Context().get(), request, &reply).ok());
  EXPECT_EQ(reply.workers(0).pending_command(), v1::COMMAND_UNSPECIFIED)
      << "only what the protocol has leaves";
  request.set_worker("c");
  EXPECT_EQ(admin_->ListWorkers(Context().get(), request, &reply).error_code(), StatusCode::NOT_FOUND);
}

TEST_F(AdminTest, MetricsAreStreamedToTheirEnd) {
  coordinator_.admin_control.metrics.best_validation_loss = 1.5;
  coordinator_.admin_control.on_export = [](const AdminControl::MetricSink& sink) {
    for (uint64_t i = 1; i <= 500; ++i) {
      MetricPointView point;
      point.name = "train/loss";
      point.version = Version(i);
      point.value = 0.5 * static_cast<double>(i);
      if (!sink(point)) break;
    }
    return absl::OkStatus();
  };
  Serve();
  v1::GetMetricsReply now;
  ASSERT_TRUE(admin_->GetMetrics(Context().get(), {}, &now).ok());
  EXPECT_EQ(now.best_validation_loss(), 1.5);
  const auto context = Context();
  const auto stream = admin_->ExportMetrics(context.get(), {});
  v1::MetricPoint point;
  uint64_t points = 0;
  while (stream->Read(&point)) {
    ++points;
    ASSERT_EQ(point.version(), points);
    ASSERT_EQ(point.value(), 0.5 * static_cast<double>(points));
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(points, 500u);
}

TEST_F(AdminTest, VerificationIsStreamedAndItsRejectionToo) {
  coordinator_.admin_control.on_verify = [](const AdminControl::VerifyReport& report) -> absl::Status {
    report({.fragment = FragmentId(0),
            .version = Version(3),
            .done = 1,
            .total = 2,
            .verdict = VerifyView::Verdict::kDifferent,
            .message = "parameters",
            .confirmed_by = {"a"},
            .denied_by = {"b"}});
    return absl::NotFoundError("no version 9");
  };
  Serve();
  v1::VerifyRequest request;
  request.set_version(9);
  const auto context = Context();
  const auto stream = admin_->Verify(context.get(), request);
  v1::VerifyProgress progress;
  ASSERT_TRUE(stream->Read(&progress));
  EXPECT_EQ(progress.verdict(), v1::VerifyProgress::DIFFERENT);
  EXPECT_THAT(progress.denied_by(), ElementsAre("b"));
  EXPECT_FALSE(stream->Read(&progress));
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(LastAsked(), "verify 9");
}

TEST_F(AdminTest, ParametersAreStreamedPieceByPiece) {
  v1::RunConfig config;
  config.mutable_run()->set_name("tiny");
  const std::vector<float> values = {1, 2, 3};
  coordinator_.admin_control.on_read = [&](ParameterSink& sink) -> absl::Status {
    ParametersView view{.run_id = "r", .epoch = Epoch(7), .config = config.SerializeAsString()};
    view.manifest.tensors = {{.name = "w", .shape = {3}}};
    view.versions = {Version(4)};
    view.outer_state = {"momentum"};
    if (!sink.Begin(view)) return absl::OkStatus();
    const auto bytes = std::as_bytes(std::span(values));
    sink.Take({.fragment = FragmentId(2), .vector = 1, .first_byte = 8, .bytes = bytes});
    return absl::NotFoundError("version 4 was dropped");
  };
  Serve();
  v1::ReadParametersRequest request;
  request.set_version(4);
  request.set_outer_state(true);
  const auto context = Context();
  const auto stream = admin_->ReadParameters(context.get(), request);
  v1::ParametersChunk message;
  ASSERT_TRUE(stream->Read(&message));
  EXPECT_EQ(message.header().config().run().name(), "tiny");
  EXPECT_EQ(message.header().manifest().tensors(0).name(), "w");
  EXPECT_THAT(message.header().versions(), ElementsAre(4u));
  EXPECT_THAT(message.header().outer_state(), ElementsAre("momentum"));
  EXPECT_EQ(message.header().epoch(), 7u);
  ASSERT_TRUE(stream->Read(&message));
  EXPECT_EQ(message.fragment(), 2u);
  EXPECT_EQ(message.vector(), 1u);
  EXPECT_EQ(message.chunk().offset(), 8u);
  EXPECT_EQ(message.chunk().data(), std::string(reinterpret_cast<const char*>(values.data()), 12));
  EXPECT_EQ(message.chunk().crc32c(), Crc32c(message.chunk().data()));
  EXPECT_FALSE(stream->Read(&message));
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(LastAsked(), "read version 4 with outer state");
}

TEST_F(AdminTest, ACheckpointWithoutANameIsNotTheNewestVersion) {
  Serve();
  v1::ReadParametersRequest request;
  request.set_checkpoint("");
  const auto context = Context();
  const auto stream = admin_->ReadParameters(context.get(), request);
  v1::ParametersChunk message;
  EXPECT_FALSE(stream->Read(&message));
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(coordinator_.admin_control.asked().empty());
}

TEST_F(AdminTest, AnExportEndsWithItsClientAndWithTheServer) {
  std::atomic<int> ended{0};
  coordinator_.admin_control.on_export = [&](const AdminControl::MetricSink& sink) {
    MetricPointView point;
    point.name = std::string(1000, 'n');
    while (sink(point)) {
    }
    ++ended;
    return absl::OkStatus();
  };
  Serve();
  auto gone = Context();
  auto stream = admin_->ExportMetrics(gone.get(), {});
  v1::MetricPoint point;
  ASSERT_TRUE(stream->Read(&point));
  gone->TryCancel();
  EXPECT_TRUE(Eventually([&] { return ended == 1; }));
  EXPECT_FALSE(stream->Finish().ok());
  auto stays = Context();
  auto slow = admin_->ExportMetrics(stays.get(), {});
  ASSERT_TRUE(slow->Read(&point));
  server_->Shutdown();
  EXPECT_EQ(ended, 2);
  while (slow->Read(&point)) {
  }
  EXPECT_FALSE(slow->Finish().ok());
}

TEST_F(AdminTest, SlowActionsAreNotInTheWayOfHeartbeats) {
  std::atomic<bool> release{false};
  std::atomic<int> inside{0};
  coordinator_.admin_control.on_verify = [&](const AdminControl::VerifyReport&) {
    ++inside;
    while (!release) std::this_thread::yield();
    return absl::OkStatus();
  };
  RpcServerOptions options = Options();
  options.admin_threads = 1;
  options.call_threads = 1;
  Serve(options);
  const auto context = Context();
  const auto stream = admin_->Verify(context.get(), {});
  ASSERT_TRUE(Eventually([&] { return inside == 1; }));
  v1::HeartbeatRequest beat;
  *beat.mutable_worker() = Self();
  v1::HeartbeatReply answered;
  EXPECT_TRUE(data_->Heartbeat(Context().get(), beat, &answered).ok());
  v1::GetStatusReply status;
  EXPECT_TRUE(admin_->GetStatus(Context().get(), {}, &status).ok());
  release = true;
  v1::VerifyProgress progress;
  while (stream->Read(&progress)) {
  }
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(AdminTest, CommandsReachTheWorkerWithItsHeartbeat) {
  coordinator_.on_heartbeat = [](const HeartbeatCall&) -> absl::StatusOr<HeartbeatReply> {
    HeartbeatReply result;
    result.command = WorkerCommand::kDrain;
    result.at_once = true;
    return result;
  };
  Serve();
  v1::HeartbeatRequest beat;
  *beat.mutable_worker() = Self();
  v1::HeartbeatReply reply;
  ASSERT_TRUE(data_->Heartbeat(Context().get(), beat, &reply).ok());
  EXPECT_EQ(reply.command(), v1::COMMAND_DRAIN);
  EXPECT_TRUE(reply.at_once());
}

TEST(PeerAddressTest, IsWhatPeopleRead) {
  EXPECT_EQ(PeerAddress("ipv4:127.0.0.1:50123"), "127.0.0.1:50123");
  EXPECT_EQ(PeerAddress("ipv6:%5B::1%5D:50123"), "[::1]:50123");
  EXPECT_EQ(PeerAddress("unix:/run/a.sock"), "/run/a.sock");
  EXPECT_EQ(PeerAddress("other"), "other");
  EXPECT_EQ(PeerHost("ipv4:127.0.0.1:50123"), "127.0.0.1");
  EXPECT_EQ(PeerHost("ipv6:%5B::1%5D:50123"), "::1");
}

}  // namespace
}  // namespace atl

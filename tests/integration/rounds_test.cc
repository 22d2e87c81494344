// Two workers and a coordinator over real gRPC in one process: the rounds are those of direct computation.
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/fragment_plan.h"
#include "gtest/gtest.h"
#include "protos/config/run_config.h"
#include "server/create_coordinator.h"
#include "server/rpc/server.h"
#include "storage/memory_store.h"
#include "tests/worker/sync/fake_replica.h"
#include "worker/client/channel.h"
#include "worker/client/grpc_connection.h"
#include "worker/sync/worker.h"

namespace atoll {
namespace {

constexpr int kRounds = 5;
constexpr int kInnerSteps = 4;
constexpr double kOuterRate = 0.7;
constexpr double kMomentum = 0.9;

std::string RunYaml(const std::string& push_codec) {
  return "run: {name: rounds-test, workers: 2, rounds: 5}\n"
         "model: {gpt: {layers: 1, heads: 1, width: 8, context: 8, vocabulary: 256}}\n"
         "data: {tokenizer: bytes, mode: shared}\n"
         "inner: {steps: 4, learning_rate: 0.1, min_learning_rate_ratio: 1, batch: 3}\n"
         "outer: {learning_rate: 0.7, momentum: 0.9}\n"
         "round: {deadline_s: 60, lease_s: 5}\n"
         "codec: {push: " +
         push_codec + "}\n";
}

/// Silent, unless ATOLL_TEST_LOG is set.
Logger TestLog() { return std::getenv("ATOLL_TEST_LOG") == nullptr ? Logger() : Logger::Create({}).value(); }

/// A coordinator in memory, listening on a free port.
class Island {
 public:
  explicit Island(const std::string& yaml) {
    const auto config = ParseRunConfig(yaml, "test");
    EXPECT_TRUE(config.ok()) << config.status();
    CoordinatorOptions options;
    options.run = ToRunOptions(*config).value();
    options.config_bytes = config->SerializeAsString();
    CoordinatorDeps deps;
    deps.store = OpenMemoryStore(NewMemoryDisk()).value();
    deps.clock = &clock_;
    deps.log = TestLog();
    auto coordinator = CreateCoordinator(std::move(options), std::move(deps));
    EXPECT_TRUE(coordinator.ok()) << coordinator.status();
    coordinator_ = *std::move(coordinator);
    RpcServerOptions rpc;
    rpc.data_address = "127.0.0.1:0";
    rpc.admin_address = "127.0.0.1:0";
    auto server = RpcServer::Start(rpc, coordinator_.get(), &clock_, TestLog());
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  ~Island() {
    coordinator_->Shutdown();
    server_->Shutdown();
  }

  const std::string& address() const { return server_->data_address(); }
  Coordinator& coordinator() { return *coordinator_; }
  const Clock* clock() const { return &clock_; }

 private:
  SystemClock clock_;
  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<RpcServer> server_;
};

/// One worker process, as a thread.
class WorkerThread {
 public:
  WorkerThread(const Island& island, const std::string& name, float target, Duration step = Duration(0))
      : data_({.address = island.address()}, MakeChannel({.address = island.address()}), island.clock()),
        control_({.address = island.address()}, MakeChannel({.address = island.address()}), island.clock()),
        worker_(Options(name),
                {.data = &data_,
                 .control = &control_,
                 .clock = island.clock(),
                 .sleeper = &sleeper_,
                 .observer = &observer_,
                 .log = TestLog(),
                 .make_replica = [this, target,
                                  step](const JoinInfo&) -> absl::StatusOr<std::unique_ptr<Replica>> {
                   auto replica = std::make_unique<FakeReplica>(target);
                   replica->on_step = [step](uint64_t) {
                     if (step > Duration(0)) std::this_thread::sleep_for(step);
                     return absl::OkStatus();
                   };
                   replica_ = replica.get();
                   return replica;
                 }}),
        thread_([this] { end_ = worker_.Run(); }) {}
  ~WorkerThread() {
    if (thread_.joinable()) Join();
  }

  WorkerEnd Join() {
    thread_.join();
    return end_;
  }
  void Stop() {
    worker_.RequestStop();
    sleeper_.Interrupt();
  }
  /// After Join.
  const FakeReplica& replica() const { return *replica_; }
  const Board& board() const { return worker_.board(); }

 private:
  static WorkerOptions Options(const std::string& name) {
    WorkerOptions options;
    options.join = {.worker = name, .secret = std::string(32, name.back())};
    options.join.dataset = DatasetFacts{"bytes", 256, 100000, std::string(64, 'a')};
    return options;
  }

  GrpcConnection data_;
  GrpcConnection control_;
  InterruptibleSleeper sleeper_;
  WorkerObserver observer_;
  FakeReplica* replica_ = nullptr;
  WorkerEnd end_;
  Worker worker_;
  std::thread thread_;  // last: it uses everything above
};

/// One parameter of the run, computed by hand: the mean of two workers' pseudo-gradients, then PyTorch's
/// SGD(nesterov=True).
float DirectComputation(float theta, float target_a, float target_b) {
  float velocity = 0;
  for (int round = 0; round < kRounds; ++round) {
    float mean = 0;
    for (const float target : {target_a, target_b}) {
      float local = theta;
      for (int i = 0; i < kInnerSteps; ++i) local -= 0.1F * (local - target);
      mean += (theta - local) / 2;
    }
    velocity = static_cast<float>(kMomentum) * velocity + mean;
    theta -= static_cast<float>(kOuterRate) * (mean + static_cast<float>(kMomentum) * velocity);
  }
  return theta;
}

class RoundsTest : public ::testing::TestWithParam<const char*> {};

TEST_P(RoundsTest, AreThoseOfDirectComputation) {
  Island island(RunYaml(GetParam()));
  WorkerThread a(island, "worker-a", 3.0F);
  WorkerThread b(island, "worker-b", 7.0F);
  const WorkerEnd end_a = a.Join();
  const WorkerEnd end_b = b.Join();
  EXPECT_EQ(end_a.code, ExitCode::kOk) << end_a.status;
  EXPECT_EQ(end_b.code, ExitCode::kOk) << end_b.status;

  const float expected = DirectComputation(1.0F, 3.0F, 7.0F);
  const float tolerance = std::string(GetParam()) == "fp32" ? 1e-5F : 0.02F;
  EXPECT_NEAR(a.replica().first(), expected, tolerance);
  EXPECT_EQ(a.replica().first(), b.replica().first()) << "both hold the published bits";
  EXPECT_EQ(a.replica().steps, static_cast<uint64_t>(kRounds * kInnerSteps));
  const StatusView status = island.coordinator().GetStatus(100);
  EXPECT_EQ(status.state, RunStateView::kFinished);
  ASSERT_EQ(status.fragments.size(), 1u);
  EXPECT_EQ(status.fragments[0].version, Version(kRounds));
  EXPECT_EQ(status.evaluations.size(), static_cast<size_t>(kRounds + 1));
  for (const WorkerView& worker : island.coordinator().ListWorkers(true)) EXPECT_EQ(worker.state, "left");
}

INSTANTIATE_TEST_SUITE_P(Codecs, RoundsTest,
                         ::testing::Values("fp32", "bf16", "int8", "int4", "e3m0", "int8_quantile"),
                         [](const auto& test) { return std::string(test.param); });

TEST(RoundsTest, FollowersByDifferencesHoldThePublishedBits) {
  Island island(RunYaml("fp32, pull_delta: int8"));
  WorkerThread a(island, "worker-a", 3.0F);
  WorkerThread b(island, "worker-b", 7.0F);
  EXPECT_EQ(a.Join().code, ExitCode::kOk);
  EXPECT_EQ(b.Join().code, ExitCode::kOk);
  EXPECT_NEAR(a.replica().first(), DirectComputation(1.0F, 3.0F, 7.0F), 0.02F);
  EXPECT_EQ(a.replica().first(), b.replica().first());
  const StatusView status = island.coordinator().GetStatus(100);
  EXPECT_EQ(status.state, RunStateView::kFinished);
  // Version 0 in full and five differences, with framing; all of them in full would be more.
  const uint64_t values = PlanFragments(a.replica().manifest(), 1)->front().elements;
  for (const WorkerView& worker : island.coordinator().ListWorkers(true)) {
    EXPECT_LT(worker.pull_bytes, (kRounds + 1) * values * sizeof(float)) << worker.name;
    EXPECT_GT(worker.pull_bytes, values * (sizeof(float) + kRounds)) << worker.name;
  }
}

TEST(RoundsTest, AStoppedWorkerLeavesAndTheOtherFinishes) {
  Island island(RunYaml("fp32"));
  WorkerThread a(island, "worker-a", 3.0F);
  WorkerThread b(island, "worker-b", 3.0F);
  // Version 1 exists as soon as one of them has seen it.
  while (a.board().progress().base < Version(1)) std::this_thread::yield();
  b.Stop();
  EXPECT_EQ(b.Join().code, ExitCode::kOk);
  const WorkerEnd end = a.Join();
  EXPECT_EQ(end.code, ExitCode::kOk) << end.status;
  EXPECT_EQ(island.coordinator().GetStatus(0).state, RunStateView::kFinished);
}

TEST(RoundsTest, FourWorkersWithOverlappedFragmentsFinishTogether) {
  Island island(
      "run: {name: streaming-test, workers: 4, rounds: 8}\n"
      "model: {gpt: {layers: 1, heads: 1, width: 8, context: 8, vocabulary: 256}}\n"
      "data: {tokenizer: bytes, mode: shared}\n"
      "inner: {steps: 10, learning_rate: 0.05, min_learning_rate_ratio: 1, batch: 3}\n"
      "outer: {learning_rate: 0.7, momentum: 0.5}\n"
      "round: {deadline_s: 60, lease_s: 5}\n"
      "codec: {push: int8, pull_delta: e3m0}\n"
      "sync: {mode: overlapped, fragments: 2, delay_steps: 3, alpha: 0.5}\n");
  std::vector<std::unique_ptr<WorkerThread>> workers;
  for (const char* name : {"worker-a", "worker-b", "worker-c", "worker-d"}) {
    workers.push_back(std::make_unique<WorkerThread>(island, name, 5.0F, Seconds(0.003)));
  }
  for (const auto& worker : workers) {
    const WorkerEnd end = worker->Join();
    EXPECT_EQ(end.code, ExitCode::kOk) << end.status;
  }
  const StatusView status = island.coordinator().GetStatus(100);
  EXPECT_EQ(status.state, RunStateView::kFinished);
  ASSERT_EQ(status.fragments.size(), 2u);
  EXPECT_GE(status.committed_tokens, status.total_tokens);
  // No more than the steps that were under way when the budget was reached.
  EXPECT_LE(status.committed_tokens, status.total_tokens + 4 * 10 * 24);
  for (const FragmentStatusView& fragment : status.fragments) EXPECT_GE(fragment.version, Version(3));
  ASSERT_FALSE(status.evaluations.empty());
  EXPECT_EQ(status.evaluations.back().version, status.fragments[0].version);
  // The fakes' evaluation is their first parameter: on its way from 1 to the target.
  EXPECT_GT(status.evaluations.back().loss, 3);
}

TEST(RoundsTest, TwoWorkersWithOneNameButAnotherSecret) {
  Island island(RunYaml("fp32"));
  WorkerThread a(island, "worker-a", 3.0F);
  while (island.coordinator().ListWorkers(false).empty()) std::this_thread::yield();
  GrpcConnection stranger({.address = island.address()}, MakeChannel({.address = island.address()}),
                          island.clock());
  JoinParameters join{.worker = "worker-a", .secret = std::string(32, 'x')};
  join.dataset = DatasetFacts{"bytes", 256, 100000, std::string(64, 'a')};
  const auto refused = stranger.Join(join);
  EXPECT_EQ(RejectionOf(refused.status()), RefusalReason::kNameTaken) << refused.status();
  a.Stop();
  EXPECT_EQ(a.Join().code, ExitCode::kOk);
}

}  // namespace
}  // namespace atoll

// Whole workers with their exchange threads, several of them: what only concurrency shows.
#include <atomic>
#include <set>
#include <thread>

#include "client/sync/worker.h"
#include "common/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/sync/streaming_harness.h"

namespace atl {
namespace {

RunOptions SharedRun(uint32_t workers) {
  RunOptions run = StreamingRun();
  run.workers = workers;
  run.rounds = 6;
  run.sync.delay_steps = 2;
  run.push_codec = CodecKind::kInt8;
  run.outer = {.optimizer = OuterOptimizerKind::kNesterov, .learning_rate = 0.7, .momentum = 0.5};
  return run;
}

/// One worker's connection: what it cancels is its own.
class OwnConnection final : public CoordinatorConnection {
 public:
  explicit OwnConnection(CoordinatorConnection* shared) : shared_(shared) {}
  absl::StatusOr<JoinedRun> Join(const JoinCall& parameters) override { return shared_->Join(parameters); }
  absl::StatusOr<HeartbeatReply> Heartbeat(const MemberRef& member, const HeartbeatCall& report) override {
    return shared_->Heartbeat(member, report);
  }
  absl::Status SeedParameters(const MemberRef& member, const Manifest& manifest,
                              std::span<const SeedFragment> fragments) override {
    return shared_->SeedParameters(member, manifest, fragments);
  }
  absl::StatusOr<PulledVersion> Pull(const MemberRef& member, const PullRequest& request,
                                     std::span<std::byte> payload) override {
    if (cancelled_) return absl::CancelledError("cancelled");
    return shared_->Pull(member, request, payload);
  }
  absl::StatusOr<PushReceipt> Push(const MemberRef& member, const PushHeader& header,
                                   std::span<const std::byte> payload, uint64_t from) override {
    return shared_->Push(member, header, payload, from);
  }
  absl::StatusOr<PushStatusReply> GetPushStatus(const MemberRef& member, const PushKey& key) override {
    return shared_->GetPushStatus(member, key);
  }
  absl::Status Leave(const MemberRef& member, const std::string& reason) override {
    return shared_->Leave(member, reason);
  }
  void CancelPulls() override { cancelled_ = true; }
  void CancelPushes() override {}

 private:
  CoordinatorConnection* const shared_;
  std::atomic<bool> cancelled_{false};
};

/// One worker's process on a thread.
class WorkerThread {
 public:
  WorkerThread(StreamingCoordinator* coordinator, const std::string& name, Duration step,
               const std::string& folder = "")
      : connection_(coordinator) {
    WorkerOptions options{.join = {.worker = WorkerName(name), .secret = std::string(32, 's')}};
    options.retry_policy.backoff = {.initial = Seconds(0.001), .maximum = Seconds(0.01), .multiplier = 2};
    options.state_folder = folder;
    worker_ = std::make_unique<Worker>(
        options,
        WorkerDeps{.data = &connection_,
                   .control = &connection_,
                   .clock = &clock_,
                   .sleeper = &sleeper_,
                   .observer = &observer_,
                   .log = Logger(),
                   .make_replica = [step](const JoinedRun&) -> absl::StatusOr<std::unique_ptr<Replica>> {
                     auto replica = std::make_unique<FakeReplica>(5.0F);
                     replica->on_step = [step](uint64_t) {
                       std::this_thread::sleep_for(step);
                       return absl::OkStatus();
                     };
                     return replica;
                   }});
    thread_ = std::thread([this] {
      end_ = worker_->Run();
      ended_ = true;
    });
  }
  ~WorkerThread() {
    if (thread_.joinable()) Stop();
  }
  WorkerEnd Join() {
    thread_.join();
    return end_;
  }
  void Stop() {
    worker_->RequestStop();
    sleeper_.Interrupt();
    thread_.join();
  }
  bool ended() const { return ended_; }
  bool Drain() { return worker_->RequestDrain(); }

 private:
  OwnConnection connection_;
  SystemClock clock_;
  InterruptibleSleeper sleeper_;
  WorkerObserver observer_;
  std::unique_ptr<Worker> worker_;
  WorkerEnd end_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

void ExpectCountedOnce(const StreamingCoordinator& coordinator) {
  std::set<std::tuple<std::string, uint32_t, uint64_t>> once;
  for (const auto& [worker, key] : coordinator.counted()) {
    EXPECT_TRUE(once.insert({worker, key.fragment.value(), key.base.value()}).second)
        << worker << " counted twice on version " << key.base.value() << " of fragment "
        << key.fragment.value();
  }
}

TEST(StreamingWorkers, ThreeOfDifferentSpeedFinishTheRunTogether) {
  const RunOptions run = SharedRun(3);
  StreamingCoordinator coordinator(FakeReplica::MakeManifest(), run);
  coordinator.workers = 3;
  coordinator.SeedWith(1.0F);
  WorkerThread a(&coordinator, "a", Seconds(0.0005));
  WorkerThread b(&coordinator, "b", Seconds(0.001));
  WorkerThread c(&coordinator, "c", Seconds(0.002));
  for (WorkerThread* worker : {&a, &b, &c}) {
    const WorkerEnd end = worker->Join();
    EXPECT_EQ(end.code, ExitCode::kOk) << end.status;
  }
  for (const uint32_t fragment : {0u, 1u}) {
    EXPECT_GE(coordinator.tokens(fragment), run.total_tokens());
    EXPECT_GT(coordinator.first_parameter(fragment), 1.0F) << "toward the target";
  }
  ExpectCountedOnce(coordinator);
}

TEST(StreamingWorkers, ConnectionsThatBreakCostNothing) {
  const RunOptions run = SharedRun(2);
  StreamingCoordinator coordinator(FakeReplica::MakeManifest(), run);
  coordinator.workers = 2;
  std::atomic<int> calls{0};
  coordinator.before_push = [&](const PushHeader&) {
    return ++calls % 3 == 0 ? absl::UnavailableError("reset") : absl::OkStatus();
  };
  coordinator.after_push = [&](const PushHeader&) {
    return ++calls % 4 == 0 ? absl::UnavailableError("reset") : absl::OkStatus();
  };
  coordinator.SeedWith(1.0F);
  WorkerThread a(&coordinator, "a", Seconds(0.0005));
  WorkerThread b(&coordinator, "b", Seconds(0.0005));
  EXPECT_EQ(a.Join().code, ExitCode::kOk);
  EXPECT_EQ(b.Join().code, ExitCode::kOk);
  EXPECT_GE(coordinator.tokens(1), run.total_tokens());
  ExpectCountedOnce(coordinator);
}

TEST(StreamingWorkers, RestartedAndRestoredInBetweenNothingCountsTwice) {
  const std::string folder = JoinPath(::testing::TempDir(), "streaming_workers");
  ASSERT_TRUE(RemoveAll(folder).ok());
  RunOptions run = SharedRun(1);
  run.rounds = 100000;
  StreamingCoordinator coordinator(FakeReplica::MakeManifest(), run);
  coordinator.SeedWith(1.0F);
  for (int life = 0; life < 4; ++life) {
    WorkerThread worker(&coordinator, "a", Seconds(0.0005), folder);
    const Version until(coordinator.head(0).value() + 3);
    while (coordinator.head(0) < until && !worker.ended()) std::this_thread::yield();
    ASSERT_FALSE(worker.ended()) << "life " << life << ": " << worker.Join().status;
    if (life == 1) coordinator.Restore();
    if (life == 2) {
      EXPECT_TRUE(worker.Drain());
      EXPECT_EQ(worker.Join().code, ExitCode::kOk);
    } else {
      worker.Stop();
    }
  }
  ExpectCountedOnce(coordinator);
}

}  // namespace
}  // namespace atl

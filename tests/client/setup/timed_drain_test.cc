#include "client/setup/timed_drain.h"

#include <atomic>
#include <thread>

#include "gtest/gtest.h"
#include "tests/client/sync/fake_coordinator.h"
#include "tests/client/sync/fake_replica.h"

namespace atl {
namespace {

/// A worker that takes steps until somebody ends it.
class TimedDrainTest : public ::testing::Test {
 protected:
  TimedDrainTest() { coordinator_.SeedWith(1.0F); }

  WorkerDeps Deps() {
    return {.data = &coordinator_,
            .control = &coordinator_,
            .clock = &clock_,
            .sleeper = &sleeper_,
            .observer = &observer_,
            .log = Logger(),
            .make_replica = [this](const JoinedRun&) -> absl::StatusOr<std::unique_ptr<Replica>> {
              auto replica = std::make_unique<FakeReplica>(5.0F);
              replica->on_step = on_step_;
              return replica;
            }};
  }

  SystemClock clock_;
  InterruptibleSleeper sleeper_;
  WorkerObserver observer_;
  FakeCoordinator coordinator_{1};
  std::function<absl::Status(uint64_t)> on_step_;
  Worker worker_{{.join = {.worker = "w1", .secret = std::string(32, 's')}}, Deps()};
};

TEST_F(TimedDrainTest, PushesWhatIsDone) {
  TimedDrain drain(&worker_, &sleeper_, Seconds(600), Logger());
  on_step_ = [&](uint64_t step) {
    if (step == 2) drain.Drain();
    return absl::OkStatus();
  };
  const WorkerEnd end = worker_.Run();
  EXPECT_TRUE(end.status.ok()) << end.status;
  EXPECT_EQ(end.how, SyncEnd::kDrained);
  ASSERT_EQ(coordinator_.headers.size(), 1u);
  EXPECT_EQ(coordinator_.headers[0].steps, 2u);
}

TEST_F(TimedDrainTest, StopsWhenTheGraceIsOver) {
  TimedDrain drain(&worker_, &sleeper_, Seconds(0.001), Logger());
  on_step_ = [&](uint64_t step) {
    if (step != 2) return absl::OkStatus();
    drain.Drain();
    while (!worker_.worker_status().commands().stop) std::this_thread::yield();
    return absl::OkStatus();
  };
  const WorkerEnd end = worker_.Run();
  EXPECT_EQ(end.how, SyncEnd::kStopped);
  EXPECT_TRUE(coordinator_.headers.empty());
}

TEST_F(TimedDrainTest, WithoutAGraceItStops) {
  TimedDrain drain(&worker_, &sleeper_, Seconds(0), Logger());
  on_step_ = [&](uint64_t step) {
    if (step == 2) drain.Drain();
    return absl::OkStatus();
  };
  EXPECT_EQ(worker_.Run().how, SyncEnd::kStopped);
  EXPECT_TRUE(coordinator_.headers.empty());
  EXPECT_TRUE(sleeper_.interrupted());
}

TEST_F(TimedDrainTest, EndsTheProcessOfAStepThatDoesNotEnd) {
  std::atomic<int> ended = 0;
  TimedDrain drain(&worker_, &sleeper_, Seconds(0.001), Logger(),
                   {.after = Seconds(0.01), .end = [&] { ++ended; }});
  on_step_ = [&](uint64_t step) {
    drain.Drain();
    while (ended == 0) std::this_thread::yield();  // a hung kernel, as far as the worker knows
    return absl::OkStatus();
  };
  EXPECT_EQ(worker_.Run().how, SyncEnd::kStopped);
  EXPECT_EQ(ended, 1);
}

TEST_F(TimedDrainTest, DetachedItDoesNothing) {
  TimedDrain drain(&worker_, &sleeper_, Seconds(0.001), Logger());
  drain.Detach();
  drain.Drain();
  drain.Stop();
  EXPECT_FALSE(worker_.worker_status().commands().stop);
  EXPECT_FALSE(sleeper_.interrupted());
}

}  // namespace
}  // namespace atl

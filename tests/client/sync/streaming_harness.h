#ifndef ATOLL_TESTS_CLIENT_SYNC_STREAMING_HARNESS_H_
#define ATOLL_TESTS_CLIENT_SYNC_STREAMING_HARNESS_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/sync/overlapped_sync.h"
#include "tests/client/sync/fake_coordinator.h"
#include "tests/client/sync/harness.h"
#include "tests/client/sync/streaming_coordinator.h"

namespace atl {

/// Exchanges on the calling thread: at once, or when the test says so.
class SteppedRunner final : public ExchangeRunner {
 public:
  SteppedRunner(std::unique_ptr<ExchangeChannel> channel, size_t channels)
      : channel_(std::move(channel)), channels_(channels) {}

  bool Start(Work work) override {
    if (!HasFreeChannel()) return false;
    if (hold) {
      held_.push_back(std::move(work));
    } else {
      work(*channel_);
    }
    return true;
  }
  bool HasFreeChannel() override { return held_.size() < channels_; }
  void RunHere(Work work) override { work(*channel_); }
  /// Who waits for an exchange gets it.
  void AwaitChange(Duration) override { RunHeld(); }
  void Notify() override {}
  bool Finish(Duration) override {
    RunHeld();
    return true;
  }
  void RunHeld() {
    while (!held_.empty()) {
      const Work work = std::move(held_.front());
      held_.pop_front();
      work(*channel_);
    }
  }
  bool hold = false;  // exchanges that start now wait for RunHeld

 private:
  const std::unique_ptr<ExchangeChannel> channel_;
  const size_t channels_;
  std::deque<Work> held_;
};

class StreamingObserver final : public WorkerObserver {
 public:
  void OnPushed(FragmentId, PushResultKind result, uint64_t, Duration) override { pushed.push_back(result); }
  void OnUsed(FragmentId fragment, Version version, uint64_t steps) override {
    used.push_back({fragment.value(), version.value(), steps});
  }
  void OnPushSkipped(FragmentId fragment) override { skipped.push_back(fragment.value()); }
  void OnRoundNotFinite() override { ++not_finite; }
  void OnRetry(const absl::Status&, Duration) override { ++retries; }

  std::vector<PushResultKind> pushed;
  std::vector<std::vector<uint64_t>> used;  // fragment, version, steps since the push
  std::vector<uint32_t> skipped;
  int not_finite = 0;
  int retries = 0;
};

/// Two fragments of one tensor each (weight in 0, bias in 1), H = 4, delay 1, a blend with alpha 0.5, SGD of
/// rate 1 outside, so that one worker's contribution alone makes its local parameters the next version.
inline RunOptions StreamingRun() {
  RunOptions run = SmallRun();
  run.sync = {.mode = SyncMode::kOverlapped,
              .fragments = 2,
              .pattern = FragmentPattern::kPacked,
              .delay_steps = 1,
              .answer = AnswerUse::kBlend,
              .alpha = 0.5,
              .max_in_flight = 2};
  run.outer.optimizer = OuterOptimizerKind::kSgd;
  run.outer.learning_rate = 1;
  return run;
}

/// One worker's overlapped loop around a coordinator in memory, on one thread.
struct StreamingHarness {
  explicit StreamingHarness(RunOptions run = StreamingRun())
      : StreamingHarness(std::make_unique<FakeReplica>(5.0F), std::move(run)) {}
  StreamingHarness(std::unique_ptr<FakeReplica> mine, RunOptions run)
      : fake(mine.get()), replica(std::move(mine)), coordinator(replica->manifest(), std::move(run)) {
    coordinator.SeedWith(1.0F);
  }
  StreamingHarness(std::unique_ptr<Replica> mine, RunOptions run)
      : replica(std::move(mine)), coordinator(replica->manifest(), std::move(run)) {
    coordinator.SeedWith(1.0F);
  }

  /// Another process of the same worker: the coordinator is another harness's.
  explicit StreamingHarness(StreamingCoordinator* other)
      : fake(new FakeReplica(5.0F)),
        replica(fake),
        coordinator(replica->manifest(), other->run),
        shared(other) {}

  /// Another life when there was one before.
  OverlappedSync& Start(WorkerCheckpoint* checkpoint = nullptr) {
    shared->Reopen();
    EXPECT_TRUE(session.Join(ManifestHash(replica->manifest())).ok());
    auto layout = LayOutFragments(replica->manifest(), session.info().fragments, session.info().run.sync);
    EXPECT_TRUE(layout.ok()) << layout.status();
    sync.reset();
    setting.emplace(context);
    runner.emplace(std::make_unique<ExchangeChannel>(shared, &session, RetryPolicyOptions{}, 1, &*setting,
                                                     &channel_time),
                   layout->size());
    sync.emplace(OuterSyncOptions{},
                 OverlappedSync::Parts{.session = &session,
                                       .replica = replica.get(),
                                       .retry_policy = &retry_policy,
                                       .heartbeater = &heartbeater,
                                       .runner = &*runner,
                                       .setting = &*setting},
                 *layout,
                 ResumeState{.checkpoint = checkpoint, .key = nullptr, .optimizer_warmup = &optimizer_warmup},
                 context);
    return *sync;
  }

  FakeClock clock;
  FakeSleeper sleeper{&clock};
  StreamingObserver observer;
  WorkerStatus worker_status;
  std::ostringstream log;
  FakeReplica* fake = nullptr;
  std::unique_ptr<Replica> replica;
  StreamingCoordinator coordinator;
  StreamingCoordinator* shared = &coordinator;
  TimeAccount time{&clock, TimeUse::kOther};
  TimeAccount channel_time{&clock, TimeUse::kIdle};
  WorkerContext context{&clock,
                        &sleeper,
                        &observer,
                        &worker_status,
                        Logger::Create({.format = LogFormat::kJson, .stream = &log, .file = ""}).value(),
                        &time};
  RetryPolicy retry_policy{RetryPolicyOptions{}, 1, context};
  MeteredConnection metered{shared, context};
  RetryingConnection connection{&metered, &retry_policy};
  Session session{&connection, TestJoin(), context};
  Heartbeater heartbeater{&metered, context};
  OptimizerWarmup optimizer_warmup;
  std::optional<ExchangeSetting> setting;
  std::optional<SteppedRunner> runner;
  std::optional<OverlappedSync> sync;
};

}  // namespace atl

#endif  // ATOLL_TESTS_CLIENT_SYNC_STREAMING_HARNESS_H_

#ifndef ATOLL_TESTS_CLIENT_SYNC_HARNESS_H_
#define ATOLL_TESTS_CLIENT_SYNC_HARNESS_H_

#include <sstream>
#include <string>

#include "client/sync/context.h"
#include "client/sync/heartbeater.h"
#include "client/sync/metered_connection.h"
#include "client/sync/observer.h"
#include "client/sync/outer_sync.h"
#include "client/sync/retry_policy.h"
#include "client/sync/retrying_connection.h"
#include "client/sync/session.h"
#include "tests/client/sync/fake_coordinator.h"
#include "tests/client/sync/fake_replica.h"
#include "tests/client/sync/fake_time.h"

namespace atl {

/// Counts what a worker shows of itself.
class CountingObserver final : public WorkerObserver {
 public:
  void OnJoined(const JoinedRun&, bool rejoin) override { rejoin ? ++rejoined : ++joined; }
  void OnPushed(FragmentId, PushResultKind result, uint64_t, Duration) override { pushed.push_back(result); }
  void OnPulled(FragmentId, Version version, uint64_t, Duration, Duration) override {
    pulled.push_back(version.value());
  }
  void OnRound(uint32_t steps, uint64_t, double, Duration) override { rounds.push_back(steps); }
  void OnRoundNotFinite() override { ++not_finite; }
  void OnRetry(const absl::Status&, Duration pause) override { pauses.push_back(pause); }

  int joined = 0;
  int rejoined = 0;
  int not_finite = 0;
  std::vector<PushResultKind> pushed;
  std::vector<uint64_t> pulled;
  std::vector<uint32_t> rounds;
  std::vector<Duration> pauses;
};

inline JoinCall TestJoin() { return {.worker = "w1", .secret = std::string(32, 's')}; }

/// A worker's parts around a fake coordinator, a fake replica and a fake clock.
struct Harness {
  explicit Harness(uint32_t fragments = 1) : coordinator(fragments) {}

  /// Joins and makes the loop; after the coordinator and the replica were set up.
  OuterSync& Start() {
    EXPECT_TRUE(session.Join(ManifestHash(replica.manifest())).ok());
    auto layout = LayOutFragments(replica.manifest(), session.info().fragments, session.info().run.sync);
    EXPECT_TRUE(layout.ok()) << layout.status();
    sync.emplace(OuterSyncOptions{}, &session, &replica, *layout,
                 ResumeState{.checkpoint = nullptr, .key = &key, .optimizer_warmup = &optimizer_warmup},
                 &retry_policy, &heartbeater, context);
    return *sync;
  }

  FakeClock clock;
  FakeSleeper sleeper{&clock};
  CountingObserver observer;
  WorkerStatus worker_status;
  std::ostringstream log;
  FakeCoordinator coordinator;
  FakeReplica replica{5.0F};
  TimeAccount time{&clock, TimeUse::kOther};
  WorkerContext context{&clock,
                        &sleeper,
                        &observer,
                        &worker_status,
                        Logger::Create({.format = LogFormat::kJson, .stream = &log, .file = ""}).value(),
                        &time};
  RetryPolicy retry_policy{RetryPolicyOptions{}, 1, context};
  MeteredConnection metered{&coordinator, context};
  RetryingConnection connection{&metered, &retry_policy};
  Session session{&connection, TestJoin(), context};
  Heartbeater heartbeater{&metered, context};
  SigningKey key = SigningKey::Generate();
  OptimizerWarmup optimizer_warmup;
  std::optional<OuterSync> sync;
};

/// `steps` inner steps of FakeReplica's on one value.
inline float Descend(float value, float target, int steps, double learning_rate = 0.1) {
  for (int i = 0; i < steps; ++i) value -= static_cast<float>(learning_rate) * (value - target);
  return value;
}

}  // namespace atl

#endif  // ATOLL_TESTS_CLIENT_SYNC_HARNESS_H_

#include <gtest/gtest.h>

#include <cmath>

#include "server/rejection.h"
#include "tests/server/test_run.h"

// Contributions on earlier bases: folded into the open round, once, also across restarts.

namespace atl {
namespace {

float Start(size_t i) { return 1.0F + 0.001F * static_cast<float>(i); }
std::vector<float> DeltaOf(const MemberRef& worker, uint64_t base) {
  return Fill([&](size_t i) {
    return 0.01F * std::sin(static_cast<float>(i + base * 31 + static_cast<size_t>(worker.worker[0])));
  });
}

CoordinatorOptions LateRun(uint32_t limit = 2) {
  CoordinatorOptions options = SmallRun();
  options.run.round.staleness_limit = limit;
  options.run.round.quorum = 0.3;  // one of up to three
  options.run.round.grace = Seconds(5);
  options.run.round.lease = Seconds(10000);
  options.run.round.deadline = Seconds(10000);
  return options;
}

absl::StatusOr<PushResult> Push(TestRun& run, const MemberRef& worker, uint64_t base) {
  return run.Push(worker, base, DeltaOf(worker, base));
}

PushStage StateOf(TestRun& run, const MemberRef& worker, uint64_t base) {
  const auto status =
      run.coordinator().GetPushStatus(worker, {.fragment = {}, .base = Version(base), .sequence = 0});
  EXPECT_TRUE(status.ok()) << status.status();
  return status.ok() ? status->stage : PushStage::kUnknown;
}

/// The worker pushes alone and the round closes without the other.
void RoundWithout(TestRun& run, const MemberRef& worker, uint64_t base) {
  ASSERT_TRUE(run.Pull(worker).ok());
  const auto pushed = Push(run, worker, base);
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  run.clock().Advance(Seconds(6));
  ASSERT_TRUE(run.Pull(worker, base).ok());
}

TEST(LateContributions, AreFoldedIntoTheOpenRoundWithTheirWeight) {
  TestRun run(LateRun());
  const std::vector<float> start = Fill(Start);
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, start);
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  RoundWithout(run, workers[0], 0);
  EXPECT_EQ(StateOf(run, workers[1], 0), PushStage::kUnknown) << "it may be sent";
  const auto late = Push(run, workers[1], 0);
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_FALSE(late->duplicate);
  EXPECT_EQ(late->head, Version(1));
  EXPECT_EQ(late->arrived, 0) << "it counts toward nothing";
  EXPECT_EQ(StateOf(run, workers[1], 0), PushStage::kAccepted);
  // The same worker contributes to the open round as well.
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  for (const MemberRef& worker : workers) ASSERT_TRUE(Push(run, worker, 1).ok());
  const std::vector<float> published = run.Published(workers[0], 1);
  EXPECT_EQ(StateOf(run, workers[1], 0), PushStage::kCommitted);
  const StatusView status = run.coordinator().GetStatus(10);
  ASSERT_EQ(status.rounds.size(), 2);
  EXPECT_EQ(status.rounds[1].contributions, 3);
  EXPECT_EQ(status.committed_tokens, 4 * 64);

  // PyTorch's Nesterov on the means by hand, uniform weights, the late one at 1 / (1 + 1/4).
  double worst = 0;
  const auto d = [&](const MemberRef& worker, uint64_t base) { return DeltaOf(worker, base); };
  const auto a0 = d(workers[0], 0), b0 = d(workers[1], 0), a1 = d(workers[0], 1), b1 = d(workers[1], 1);
  for (size_t i = 0; i < start.size(); ++i) {
    double theta = start[i];
    double v = a0[i];
    theta -= 0.7 * (a0[i] + 0.9 * v);
    const double mean = (0.8 * b0[i] + a1[i] + b1[i]) / 2.8;
    v = 0.9 * v + mean;
    theta -= 0.7 * (mean + 0.9 * v);
    worst = std::max(worst, std::abs(theta - published[i]));
  }
  EXPECT_LT(worst, 2e-6);
}

TEST(LateContributions, CountOnceAndNotAfterTheLimit) {
  TestRun run(LateRun());
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  RoundWithout(run, workers[0], 0);
  ASSERT_TRUE(Push(run, workers[1], 0).ok());
  const auto again = Push(run, workers[1], 0);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->duplicate);
  EXPECT_EQ(ReasonOf(run.Push(workers[1], 0, Fill(Start)).status()), RejectionReason::kAlreadyPushed);
  RoundWithout(run, workers[0], 1);
  EXPECT_TRUE(Push(run, workers[1], 0)->duplicate) << "part of version 2";
  EXPECT_EQ(ReasonOf(run.Push(workers[1], 0, Fill(Start)).status()), RejectionReason::kStaleBase);

  const MemberRef c = run.Join("c");
  ASSERT_TRUE(run.Pull(c).ok());
  RoundWithout(run, workers[0], 2);
  RoundWithout(run, workers[0], 3);
  RoundWithout(run, workers[0], 4);
  const auto too_late = Push(run, c, 2);
  EXPECT_EQ(ReasonOf(too_late.status()), RejectionReason::kStaleBase);
  EXPECT_EQ(RejectionOf(too_late.status())->metadata.at(kHeadVersionKey), "5");
  EXPECT_EQ(StateOf(run, c, 2), PushStage::kMissed);
  EXPECT_TRUE(Push(run, c, 3).ok()) << "two versions late is allowed";
}

TEST(LateContributions, ComeBackIntoTheOpenRoundAfterARestart) {
  std::vector<std::vector<float>> outcomes;
  for (const bool restarts : {false, true}) {
    CoordinatorOptions options = LateRun();
    options.run.keep_versions = 1;
    TestRun run(options);
    const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
    for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
    RoundWithout(run, workers[0], 0);
    RoundWithout(run, workers[0], 1);
    ASSERT_TRUE(Push(run, workers[1], 0).ok());
    // Version 0, its base, is not on disk any more; the contribution needs none of it.
    run.WaitForStored(2);
    if (restarts) {
      const absl::Status restarted = run.Restart();
      ASSERT_TRUE(restarted.ok()) << restarted;
      EXPECT_EQ(StateOf(run, workers[1], 0), PushStage::kAccepted);
      EXPECT_TRUE(Push(run, workers[1], 0)->duplicate);
      HeartbeatCall computing;
      computing.progress.phase = WorkerPhase::kTraining;
      computing.progress.base = Version(2);
      ASSERT_TRUE(run.coordinator().Heartbeat(workers[0], computing).ok());
    }
    RoundWithout(run, workers[0], 2);
    if (restarts) {
      ASSERT_TRUE(run.Restart().ok());
      EXPECT_EQ(StateOf(run, workers[1], 0), PushStage::kCommitted);
      EXPECT_TRUE(Push(run, workers[1], 0)->duplicate) << "once, also across restarts";
    }
    outcomes.push_back(run.Published(workers[0], 2));
    EXPECT_EQ(run.coordinator().GetStatus(10).rounds.back().contributions, 2);
  }
  EXPECT_EQ(outcomes[0], outcomes[1]);
}

TEST(LateContributions, AreKeptWhenTheLimitIsLoweredMeanwhile) {
  CoordinatorOptions options = LateRun();
  TestRun run(options);
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  RoundWithout(run, workers[0], 0);
  ASSERT_TRUE(Push(run, workers[1], 0).ok());
  run.options().run.round.staleness_limit = 0;
  run.options().config_bytes = "config-2";
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_EQ(StateOf(run, workers[1], 0), PushStage::kAccepted) << "what was acknowledged counts";
  RoundWithout(run, workers[0], 1);
  EXPECT_EQ(run.coordinator().GetStatus(10).rounds.back().contributions, 2);
}

TEST(LateContributions, AnUploadThatIsOvertakenByACommitGoesOn) {
  TestRun run(LateRun());
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  const std::vector<float> values = DeltaOf(workers[1], 0);
  const std::span<const std::byte> payload = AsBytes(values);
  {
    const auto session = run.coordinator().StartPush(workers[1], run.MakePush(0, payload));
    ASSERT_TRUE(session.ok());
    ASSERT_TRUE((*session)->Append(0, payload.first(1000)).ok());
  }
  RoundWithout(run, workers[0], 0);
  const auto known =
      run.coordinator().GetPushStatus(workers[1], {.fragment = {}, .base = Version(0), .sequence = 0});
  ASSERT_TRUE(known.ok());
  EXPECT_EQ(known->stage, PushStage::kPartial);
  EXPECT_EQ(known->received_bytes, 1000);
  const auto session = run.coordinator().StartPush(workers[1], run.MakePush(0, payload));
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE((*session)->Append(1000, payload.subspan(1000)).ok());
  EXPECT_TRUE((*session)->Finish().ok());
}

/// "config-1" allows one version, "config-2" three.
struct TwoLimits final : ConfigCodec {
  absl::StatusOr<RunOptions> Parse(const std::string& bytes) const override {
    return LateRun(bytes == "config-1" ? 1 : 3).run;
  }
  absl::StatusOr<std::string> Apply(const std::string& bytes,
                                    std::span<const ConfigSetting> settings) const override {
    return bytes;
  }
  absl::StatusOr<std::vector<ConfigChange>> Diff(const std::string& before,
                                                 const std::string& after) const override {
    if (before == after) return std::vector<ConfigChange>();
    return std::vector<ConfigChange>{{"round.staleness_limit", before, after}};
  }
};

TEST(LateContributions, ALargerLimitHoldsInTheStoreFromTheStart) {
  const TwoLimits codec;
  TestRun run(LateRun(1), {.config_codec = &codec});
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  RoundWithout(run, workers[0], 0);
  EXPECT_EQ(run.faults().kept_late, 1);
  run.options() = LateRun(3);
  run.options().config_bytes = "config-2";
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_EQ(run.faults().kept_late, 3);
  // The round that closes was opened with 1; the one that opens then takes what is late by 3.
  RoundWithout(run, workers[0], 1);
  EXPECT_EQ(run.faults().kept_late, 3);
}

}  // namespace
}  // namespace atl

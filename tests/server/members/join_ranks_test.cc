// The bound of ranks in one worker: what a Join may name, and what its contribution then counts.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/test_run.h"

namespace atl {
namespace {

constexpr uint32_t kMaxRanks = 8;
constexpr uint64_t kTwoSteps = 2 * kStepTokens;  // of one rank

CoordinatorOptions EightRanks() {
  CoordinatorOptions options = SmallRun();
  options.run.workers = 1;
  options.run.round.start_workers = 1;
  options.max_ranks = kMaxRanks;
  return options;
}

class JoinRanks : public testing::Test {
 protected:
  absl::StatusOr<JoinReply> Join(uint32_t ranks, bool has_model = true) {
    JoinCall call;
    call.worker = "island";
    call.secret = "0123456789abcdef-island";
    call.device = {.device = "cpu", .ranks = ranks};
    if (has_model) call.manifest_hash = ManifestHash(SmallManifest());
    return run_.coordinator().Join(call);
  }
  std::vector<WorkerView> Members() { return run_.coordinator().ListWorkers(/*all=*/true); }
  /// Tokens that count of a contribution of two steps that claims so many.
  uint64_t CountedOf(const MemberRef& member, uint64_t tokens) {
    SeedBy(member);
    return CountedOfSeeded(member, tokens);
  }
  void SeedBy(const MemberRef& member) {
    EXPECT_TRUE(run_.Seed(member, Fill([](size_t) { return 1.0F; })).ok());
  }
  uint64_t CountedOfSeeded(const MemberRef& member, uint64_t tokens) {
    EXPECT_TRUE(run_.Pull(member).ok());
    EXPECT_TRUE(run_.Push(member, 0, Fill([](size_t) { return 0.001F; }), {.tokens = tokens}).ok());
    EXPECT_TRUE(run_.Pull(member, 0).ok()) << "version 1";
    return run_.coordinator().GetStatus(0).committed_tokens;
  }

  TestRun run_{EightRanks()};
};

TEST_F(JoinRanks, AsManyAsAreAllowedJoinAndCountInFull) {
  const auto joined = Join(kMaxRanks);
  ASSERT_TRUE(joined.ok()) << joined.status();
  ASSERT_EQ(Members().size(), 1u);
  EXPECT_EQ(Members()[0].device.ranks, kMaxRanks);
  EXPECT_EQ(CountedOf(joined->member, kMaxRanks * kTwoSteps), kMaxRanks * kTwoSteps);
}

TEST(GatheringRanks, WhoComesFirstPlansForAsManyRanksInTheWorkersToCome) {
  CoordinatorOptions options = EightRanks();
  options.run.workers = 3;
  options.run.round.start_workers = 3;
  TestRun run(options);
  const auto join = [&](const std::string& worker, uint32_t ranks) {
    JoinCall call{.worker = worker, .secret = "0123456789abcdef-" + worker};
    call.device = {.device = "cpu", .ranks = ranks};
    call.manifest_hash = ManifestHash(SmallManifest());
    const auto joined = run.coordinator().Join(call);
    EXPECT_TRUE(joined.ok()) << joined.status();
    return joined->member;
  };
  const MemberRef first = join("a", 2);
  ASSERT_TRUE(run.Seed(first, Fill([](size_t) { return 1.0F; })).ok());
  EXPECT_EQ(run.Pull(first)->plan.active_workers, 6u) << "three islands of two ranks";
  const MemberRef second = join("b", 3);
  EXPECT_EQ(run.Pull(second)->plan.active_workers, 8u) << "two and three, and three more";
  EXPECT_EQ(run.Pull(join("c", 1))->plan.active_workers, 6u) << "all are here";
}

TEST_F(JoinRanks, MoreTokensThanThoseOfAllRanksDoNotCount) {
  const auto joined = Join(kMaxRanks);
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(CountedOf(joined->member, (kMaxRanks + 1) * kTwoSteps), kMaxRanks * kTwoSteps);
}

TEST_F(JoinRanks, OneMoreIsRejectedAndChangesNothing) {
  for (const bool has_model : {false, true}) {
    const absl::Status rejected = Join(kMaxRanks + 1, has_model).status();
    EXPECT_TRUE(absl::IsInvalidArgument(rejected)) << rejected;
    EXPECT_EQ(rejected.message(),
              "worker 'island' has 9 ranks, and this coordinator takes at most 8 in one worker, because its "
              "contribution counts as many times; start several workers, or the coordinator with --max-ranks "
              "9");
    EXPECT_TRUE(Members().empty());
  }
  // The name is free, also for another secret's owner.
  EXPECT_TRUE(run_.TryJoin("island", "another").ok());
  EXPECT_EQ(Members().size(), 1u);
}

TEST_F(JoinRanks, AMemberThatComesBackWithMoreStaysWhatItWas) {
  const auto first = Join(2);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(absl::IsInvalidArgument(Join(kMaxRanks + 1).status()));
  EXPECT_TRUE(run_.Heartbeat(first->member).ok()) << "its life goes on";
  EXPECT_EQ(Members()[0].device.ranks, 2u);
}

TEST_F(JoinRanks, AHeartbeatDoesNotRaiseThem) {
  const auto joined = Join(2);
  ASSERT_TRUE(joined.ok()) << joined.status();
  HeartbeatCall call;
  call.device = DeviceDescription{.device = "cpu", .ranks = kMaxRanks};
  ASSERT_TRUE(run_.coordinator().Heartbeat(joined->member, call).ok());
  EXPECT_EQ(Members()[0].device.ranks, 2u);
  EXPECT_EQ(CountedOf(joined->member, kMaxRanks * kTwoSteps), 2 * kTwoSteps);
}

TEST_F(JoinRanks, ARestartWithALowerBoundSaysOnceWhatCountsAndShowsTheTrueNumber) {
  const auto joined = Join(4);
  ASSERT_TRUE(joined.ok()) << joined.status();
  SeedBy(joined->member);
  run_.options().max_ranks = 2;
  ASSERT_TRUE(run_.Restart().ok());
  EventCatcher events(&run_.coordinator(), run_.coordinator().GetStatus(0).last_event_sequence);
  HeartbeatCall call;
  call.device = DeviceDescription{.device = "cpu", .ranks = 4};
  ASSERT_TRUE(run_.coordinator().Heartbeat(joined->member, call).ok());
  ASSERT_TRUE(run_.coordinator().Heartbeat(joined->member, call).ok());
  const auto said = events.WaitFor(EventKind::kUnknown);
  ASSERT_TRUE(said.has_value());
  EXPECT_EQ(said->message,
            "worker 'island' has 4 ranks and counts as 2: the coordinator was started again with --max-ranks "
            "2. Start it with --max-ranks 4, or its other tokens are not counted");
  EXPECT_TRUE(said->warns);
  EXPECT_EQ(said->worker, "island");
  EXPECT_EQ(events.events().size(), 1u);
  EXPECT_EQ(Members()[0].device.ranks, 4u);
  EXPECT_EQ(CountedOfSeeded(joined->member, 4 * kTwoSteps), 2 * kTwoSteps);
}

TEST_F(JoinRanks, ARestartWithTheBoundOfBeforeSaysNothing) {
  const auto joined = Join(kMaxRanks);
  ASSERT_TRUE(joined.ok()) << joined.status();
  SeedBy(joined->member);
  ASSERT_TRUE(run_.Restart().ok());
  const uint64_t last = run_.coordinator().GetStatus(0).last_event_sequence;
  HeartbeatCall call;
  call.device = DeviceDescription{.device = "cpu", .ranks = kMaxRanks};
  ASSERT_TRUE(run_.coordinator().Heartbeat(joined->member, call).ok());
  EXPECT_EQ(run_.coordinator().GetStatus(0).last_event_sequence, last);
  EXPECT_EQ(Members()[0].device.ranks, kMaxRanks);
}

/// Of a run whose run.workers may count islands instead of ranks.
class EarlyEnd : public testing::Test {
 protected:
  static CoordinatorOptions Options(uint32_t workers) {
    CoordinatorOptions options = EightRanks();
    options.run.workers = workers;
    options.run.rounds = 100;
    return options;
  }
  static auto IsOnlyAJoin() {
    return testing::AllOf(testing::HasSubstr("' "), testing::Not(testing::HasSubstr("run.workers")),
                          testing::ContainsRegex("joined|is back"));
  }
  /// The event of the Join.
  static std::string JoinOf(TestRun& run, const std::string& worker, uint32_t ranks,
                            WorkerRole role = WorkerRole::kTrainer) {
    const uint64_t last = run.coordinator().GetStatus(0).last_event_sequence;
    JoinCall call{.worker = worker, .secret = "0123456789abcdef-" + worker, .role = role};
    call.device = {.device = "cpu", .ranks = ranks};
    call.manifest_hash = ManifestHash(SmallManifest());
    const auto joined = run.coordinator().Join(call);
    if (!joined.ok()) return std::string(joined.status().message());
    EventCatcher events(&run.coordinator(), last);
    const auto event =
        events.WaitFor(joined->returning ? EventKind::kWorkerReturned : EventKind::kWorkerJoined);
    return event ? event->message : "no event";
  }
};

TEST_F(EarlyEnd, IsSaidWithTheFactorAndTheRemedyOncePerIsland) {
  TestRun run(Options(2));
  EXPECT_THAT(JoinOf(run, "a", 8),
              testing::EndsWith(
                  "; 8 ranks are here and run.workers is 2, so a round counts as 4 rounds and the run ends "
                  "before run.rounds (100). run.workers counts all ranks: in a new run, set "
                  "run.workers: 8 and round.start_workers to the number of islands; in this one, "
                  "for as many rounds of these ranks, 'atollctl run extend 300'"));
  EXPECT_THAT(JoinOf(run, "b", 8),
              testing::HasSubstr("16 ranks are here and run.workers is 2, so a round counts as 8 rounds"));
  EXPECT_THAT(JoinOf(run, "a", 8), IsOnlyAJoin()) << "it was told";
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_THAT(JoinOf(run, "a", 8), IsOnlyAJoin()) << "in an earlier life of the coordinator";
}

TEST_F(EarlyEnd, AnIslandOfAnAsynchronousRunIsToldWhatTheDelayCounts) {
  CoordinatorOptions options = Options(16);
  options.run.outer.optimizer = OuterOptimizerKind::kDelayedNesterov;
  options.run.outer.delay = 16;
  TestRun run(options);
  EXPECT_THAT(JoinOf(run, "a", 8),
              testing::HasSubstr("outer.delay is 16, as run.workers, but is to be the number of islands"));
  options.run.outer.delay = 2;
  TestRun fits(options);
  EXPECT_THAT(JoinOf(fits, "a", 8), testing::Not(testing::HasSubstr("outer.delay")));
}

TEST_F(EarlyEnd, AnIslandThatGrowsIsTold) {
  TestRun run(Options(4));
  EXPECT_THAT(JoinOf(run, "a", 4), IsOnlyAJoin());
  EXPECT_THAT(JoinOf(run, "a", 6), testing::HasSubstr("so a round counts as 1.5 rounds and"));
  EXPECT_THAT(JoinOf(run, "a", 5), IsOnlyAJoin());
}

TEST_F(EarlyEnd, IsNotSaidOfARunThatCountsRanks) {
  TestRun run(Options(16));
  EXPECT_THAT(JoinOf(run, "a", 8), IsOnlyAJoin());
  EXPECT_THAT(JoinOf(run, "evaluator", 8, WorkerRole::kEvaluator),
              testing::AllOf(IsOnlyAJoin(), testing::EndsWith(" with 8 ranks")));
  EXPECT_THAT(JoinOf(run, "b", 8), IsOnlyAJoin());
  EXPECT_THAT(JoinOf(run, "c", 1), IsOnlyAJoin()) << "a worker too many is no island";
  EXPECT_THAT(JoinOf(run, "d", 2), testing::HasSubstr("19 ranks are here"));
}

}  // namespace
}  // namespace atl

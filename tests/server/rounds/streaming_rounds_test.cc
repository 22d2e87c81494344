#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/test_run.h"

// Overlapped fragments: their own versions, tokens and ends (docs/reference/streaming.md).

namespace atl {
namespace {

using testing::HasSubstr;

// Each of the two fragments of SmallManifest.
const std::vector<float> kPart(512, 0.0F);

CoordinatorOptions StreamingRun(uint32_t rounds) {
  CoordinatorOptions options = SmallRun();
  options.fragments = options.run.sync.fragments = 2;
  options.run.sync.mode = SyncMode::kOverlapped;
  options.run.rounds = rounds;  // 128 tokens each: two workers, two steps of 32 tokens
  return options;
}

PushVariation Of(uint32_t fragment, uint64_t tokens, uint32_t steps = 2) {
  PushVariation variation;
  variation.fragment = FragmentId(fragment);
  variation.tokens = tokens;
  variation.steps = steps;
  return variation;
}

uint64_t TokensIn(const absl::StatusOr<PullResult>& pulled) {
  EXPECT_TRUE(pulled.ok()) << pulled.status();
  return pulled.ok() ? pulled->plan.committed_tokens : 0;
}

TEST(StreamingRounds, EachFragmentHasAVersionAndACountOfItsOwn) {
  TestRun run(StreamingRun(100));
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, 0, kPart, Of(0, 32, 1)).ok());
  EXPECT_EQ(TokensIn(run.Pull(workers[0], 0, FragmentId(0))), 64);
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, 1, kPart, Of(0, 64)).ok());
  EXPECT_EQ(TokensIn(run.Pull(workers[0], 1, FragmentId(0))), 64 + 128);
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, 0, kPart, Of(1, 48)).ok());
  EXPECT_EQ(TokensIn(run.Pull(workers[0], 0, FragmentId(1))), 96);
  StatusView status = run.coordinator().GetStatus(10);
  EXPECT_EQ(status.committed_tokens, 192) << "those of fragment 0";
  EXPECT_EQ(status.fragments[0].version, Version(2));
  EXPECT_EQ(status.fragments[1].version, Version(1));

  run.WaitForStored(2);
  ASSERT_TRUE(run.Restart().ok());
  const MemberRef again = run.Join("a");
  EXPECT_EQ(TokensIn(run.Pull(again, std::nullopt, FragmentId(1))), 96);
  EXPECT_EQ(TokensIn(run.Pull(again, std::nullopt, FragmentId(0))), 192);
}

TEST(StreamingRounds, AFragmentIsFinishedWhenItsOwnTokensAreAll) {
  TestRun run(StreamingRun(1));
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, 0, kPart, Of(0, 64)).ok());
  const auto last = run.Pull(workers[0], 0, FragmentId(0));
  EXPECT_EQ(TokensIn(last), last->plan.total_tokens);
  EXPECT_EQ(run.Pull(workers[0], 1, FragmentId(0))->outcome, PullOutcome::kRunFinished);
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, 0, kPart, Of(1, 40)).ok());
  EXPECT_EQ(TokensIn(run.Pull(workers[0], 0, FragmentId(1))), 80);
  EXPECT_NE(run.coordinator().GetStatus(0).state, RunState::kFinished) << "fragment 1 is short of 48";
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, 1, kPart, Of(1, 24)).ok());
  EXPECT_EQ(TokensIn(run.Pull(workers[0], 1, FragmentId(1))), 128);
  EXPECT_EQ(run.coordinator().GetStatus(0).state, RunState::kFinished);
}

TEST(StreamingRounds, BlockingFragmentsFinishWithFragmentZero) {
  CoordinatorOptions options = StreamingRun(1);
  options.run.sync.mode = SyncMode::kBlocking;
  TestRun run(options);
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, 0, kPart, Of(1, 40)).ok());
  ASSERT_TRUE(run.Pull(workers[0], 0, FragmentId(1)).ok());
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, 0, kPart, Of(0, 64)).ok());
  ASSERT_TRUE(run.Pull(workers[0], 0, FragmentId(0)).ok());
  EXPECT_EQ(run.coordinator().GetStatus(0).state, RunState::kFinished);
}

TEST(StreamingRounds, AContributionMayBeOfMoreStepsThanThePlanButNotOfAnyNumber) {
  TestRun run(StreamingRun(100));
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  ASSERT_TRUE(run.Push(workers[0], 0, kPart, Of(0, 5 * kStepTokens, 5)).ok());
  ASSERT_TRUE(run.Push(workers[1], 0, kPart, Of(0, 50 * kStepTokens, 50)).ok());
  EXPECT_EQ(TokensIn(run.Pull(workers[0], 0, FragmentId(0))), (5 + 8) * kStepTokens)
      << "four times the plan at most";
}

TEST(StreamingRounds, TheGraceIsWhatTheFirstToArriveDoesNotFeel) {
  CoordinatorOptions options = StreamingRun(100);
  options.run.sync.delay_steps = 10;
  options.run.inner.steps = 20;
  options.run.round = {.deadline = Seconds(1000), .quorum = 0.5, .lease = Seconds(10000), .start_workers = 2};
  options.run.round.grace_mode = GraceMode::kAdaptive;
  TestRun run(options);
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  run.clock().Advance(Seconds(20));
  // One step a second: of the ten seconds that are hidden, eight are given to the other.
  ASSERT_TRUE(run.Push(workers[0], 0, kPart, Of(0, 20 * kStepTokens, 20)).ok());
  EXPECT_TRUE(Eventually([&] {
    return run.coordinator().GetStatus(0).fragments[0].waiting_for.find("grace running") != std::string::npos;
  }));
  run.clock().Advance(Seconds(7.5));
  ASSERT_TRUE(Eventually([&] { return run.coordinator().GetStatus(0).fragments[0].wait_ends_in_s < 1; }));
  run.clock().Advance(Seconds(1));
  ASSERT_TRUE(run.Pull(workers[0], 0, FragmentId(0)).ok());
  const StatusView status = run.coordinator().GetStatus(10);
  EXPECT_THAT(status.rounds.back().close_reason, HasSubstr("the grace of 8.0 s is over; without b"));
}

TEST(StreamingRounds, AFinishedFragmentSaysSoAfterARestartBeforeTheOthersFinished) {
  CoordinatorOptions options = StreamingRun(1);
  options.run.sync.mode = SyncMode::kBlocking;
  TestRun run(options);
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, 0, kPart, Of(0, 64)).ok());
  ASSERT_EQ(TokensIn(run.Pull(workers[0], 0, FragmentId(0))), 128);
  ASSERT_TRUE(run.Restart().ok());
  const auto ended = run.Pull(workers[0], 1, FragmentId(0), Duration(0));
  ASSERT_TRUE(ended.ok()) << ended.status();
  EXPECT_EQ(ended->outcome, PullOutcome::kRunFinished);
  EXPECT_NE(run.coordinator().GetStatus(0).state, RunState::kFinished) << "fragment 1 is at version 0";
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, 0, kPart, Of(1, 64)).ok());
  ASSERT_TRUE(run.Pull(workers[0], 0, FragmentId(1)).ok());
  EXPECT_EQ(run.Pull(workers[0], 1, FragmentId(1))->outcome, PullOutcome::kRunFinished);
  EXPECT_EQ(run.coordinator().GetStatus(0).state, RunState::kFinished);
}

/// Fragment 1 is at its last version, and has accepted b's late contribution to the one before; fragment 0
/// waits for b.
std::vector<MemberRef> AlmostFinished(TestRun& run) {
  std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  for (const MemberRef& worker : workers) {
    for (const uint32_t fragment : {0U, 1U}) {
      EXPECT_TRUE(run.Pull(worker, std::nullopt, FragmentId(fragment)).ok());
    }
  }
  EXPECT_TRUE(run.Push(workers[0], 0, kPart, Of(1, 64)).ok());
  run.clock().Advance(Seconds(6));
  EXPECT_TRUE(run.Pull(workers[0], 0, FragmentId(1)).ok());
  EXPECT_TRUE(run.Push(workers[1], 0, kPart, Of(1, 64)).ok());
  EXPECT_TRUE(run.Push(workers[0], 0, kPart, Of(0, 64)).ok());
  return workers;
}

CoordinatorOptions LateBlockingRun() {
  CoordinatorOptions options = StreamingRun(1);
  options.run.sync.mode = SyncMode::kBlocking;
  options.run.round.staleness_limit = 1;
  options.run.round.quorum = 0.5;
  options.run.round.grace_mode = GraceMode::kFixed;
  options.run.round.grace = Seconds(5);
  options.run.round.lease = options.run.round.deadline = Seconds(10000);
  return options;
}

PushStage StateOf(TestRun& run, const MemberRef& worker) {
  const auto status =
      run.coordinator().GetPushStatus(worker, {.fragment = FragmentId(1), .base = Version(0), .sequence = 0});
  EXPECT_TRUE(status.ok()) << status.status();
  return status.ok() ? status->stage : PushStage::kUnknown;
}

TEST(StreamingRounds, WhatIsAcceptedAtTheEndOfTheRunBecomesPartOfAVersion) {
  for (const bool restarts : {false, true}) {
    TestRun run(LateBlockingRun());
    const std::vector<MemberRef> workers = AlmostFinished(run);
    EXPECT_EQ(StateOf(run, workers[1]), PushStage::kAccepted);
    run.faults().commit = restarts;
    ASSERT_TRUE(run.Push(workers[1], 0, kPart, Of(0, 64)).ok());
    if (restarts) {
      ASSERT_TRUE(Eventually([&] { return run.faults().rejected_commits > 0; }));
      run.faults().commit = false;
      ASSERT_TRUE(run.Restart().ok());
      run.clock().Advance(Seconds(6));
    }
    EXPECT_TRUE(Eventually([&] { return run.coordinator().GetStatus(0).state == RunState::kFinished; }));
    EXPECT_EQ(StateOf(run, workers[1]), PushStage::kCommitted) << restarts;
    EXPECT_EQ(run.coordinator().GetStatus(0).fragments[1].version, Version(2));
    // Status has a version a moment before pulls do.
    EXPECT_TRUE(Eventually(
        [&] { return run.Pull(workers[0], 2, FragmentId(1))->outcome == PullOutcome::kRunFinished; }));
  }
}

}  // namespace
}  // namespace atl

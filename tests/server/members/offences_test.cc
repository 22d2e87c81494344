#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <thread>
#include <vector>

#include "core/privacy.h"
#include "server/rejection.h"
#include "tests/server/test_run.h"

// What is held against a contribution is noted in the round's record, and who has too much of it is banned.

namespace atl {
namespace {

using testing::HasSubstr;

constexpr Duration kDeadline = Seconds(100);
const std::vector<WorkerName> kNames = {"a", "b", "c", "d", "e"};

CoordinatorOptions Options(OffenderOptions offenders) {
  CoordinatorOptions options = SmallRun();
  options.run.workers = 5;
  options.run.round.start_workers = 5;
  options.run.round.grace = Seconds(0);
  options.run.round.grace_mode = GraceMode::kFixed;
  options.run.round.deadline = kDeadline;
  options.run.round.lease = Seconds(1e6);
  options.run.merge = {.weights = MergeWeighting::kUniform, .norm_guard = true};
  options.run.offenders = offenders;
  return options;
}

/// A little different every time, as training is.
std::vector<float> Honest(const WorkerName& name, float size = 1) {
  static int times = 0;
  const auto nth = static_cast<float>(name[0] - 'a' + 10 * (++times % 100));
  return Fill(
      [&](size_t i) { return size * 0.01F * (1 + 0.3F * std::sin(static_cast<float>(i) * (1 + nth))); });
}

std::vector<float> NotFinite() {
  return Fill([](size_t i) { return i == 7 ? std::numeric_limits<float>::quiet_NaN() : 1.0F; });
}

WorkerView ViewOf(TestRun& run, const WorkerName& name) {
  for (WorkerView& view : run.coordinator().ListWorkers(/*all=*/true)) {
    if (view.name == name) return view;
  }
  ADD_FAILURE() << "no worker " << name;
  return {};
}

/// Whether it is there within a moment of the wall clock's time.
bool IsPublished(TestRun& run, uint64_t version) {
  for (int i = 0; i < 30; ++i) {
    if (run.coordinator().GetStatus(0).fragments[0].version.value() >= version) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

/// One round on `base`: everybody is honest, but e pushes `attack`, unless that is empty or e is banned. It
/// comes first: who joined after the round was opened is not waited for.
void Round(TestRun& run, const std::vector<MemberRef>& workers, uint64_t base,
           const std::vector<float>& attack) {
  bool waits = attack.empty();
  for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
  for (const MemberRef& worker : std::vector<MemberRef>(workers.rbegin(), workers.rend())) {
    const bool attacker = worker.worker == "e";
    if (attacker && attack.empty()) continue;
    const auto pushed = run.Push(worker, base, attacker ? attack : Honest(worker.worker));
    waits = waits || !pushed.ok();
    ASSERT_TRUE(pushed.ok() || attacker) << pushed.status();
  }
  // A round that still waits for e does so until its deadline. One that is closed already must not have the
  // time of the next one spoilt.
  if (waits && !IsPublished(run, base + 1)) run.clock().Advance(kDeadline + Seconds(1));
  ASSERT_TRUE(run.Pull(workers[0], base).ok());
}

absl::Status Unban(TestRun& run, const WorkerName& name) {
  return run.admin()
      .ControlWorker({.user = "ann", .peer = "here"},
                     {.worker = name, .action = WorkerAction::kUnban, .reason = "sound again"})
      .status();
}

TEST(Offences, BanByTheRuleWithTheEvidenceAndAreForgivenByUnban) {
  TestRun run(Options({.ban_after = 2, .within = 4}));
  std::optional<EventCatcher> events(std::in_place, &run.coordinator());
  const std::vector<MemberRef> workers = run.Begin(kNames, Fill([](size_t) { return 1.0F; }));
  Round(run, workers, 0, Honest("e", -50));
  const auto suspect = events->WaitFor(EventKind::kContributionSuspect);
  ASSERT_TRUE(suspect.has_value());
  EXPECT_EQ(suspect->worker, "e");
  EXPECT_THAT(suspect->message, HasSubstr(" times the median, "));
  EXPECT_THAT(suspect->message, HasSubstr("cosine -0."));
  EXPECT_FALSE(ViewOf(run, "e").banned) << "once is not enough";
  EXPECT_EQ(ViewOf(run, "e").offences.recent(), 1u);
  EXPECT_LT(ViewOf(run, "e").offences.last().guard, 0.03);

  Round(run, workers, 1, Honest("e"));  // an honest round between does not help within four
  Round(run, workers, 2, Honest("e", -50));
  const auto banned = events->WaitFor(EventKind::kWorkerBanned);
  ASSERT_TRUE(banned.has_value());
  EXPECT_EQ(banned->worker, "e");
  EXPECT_THAT(banned->message, HasSubstr("by rule (offenders.ban_after 2 of 4): 2 of its last 3 rounds"));
  EXPECT_THAT(banned->message, HasSubstr("atollctl workers unban e"));
  EXPECT_TRUE(ViewOf(run, "e").banned);
  EXPECT_EQ(ReasonOf(run.TryJoin("e").status()), RejectionReason::kBanned);
  for (const char* honest : {"a", "b", "c", "d"})
    EXPECT_EQ(ViewOf(run, honest).offences.recent(), 0u) << honest;

  // The others go on without it, and no round waits for it.
  Round(run, {workers.begin(), workers.end() - 1}, 3, {1});
  events.reset();
  ASSERT_TRUE(Unban(run, "e").ok());
  EXPECT_EQ(ViewOf(run, "e").offences.recent(), 0u);
  ASSERT_TRUE(run.TryJoin("e").ok());
}

TEST(Offences, AreKnownAfterARestartAndSoIsWhatWasForgiven) {
  TestRun run(Options({.ban_after = 2, .within = 4}));
  std::vector<MemberRef> workers = run.Begin(kNames, Fill([](size_t) { return 1.0F; }));
  Round(run, workers, 0, Honest("e", -50));
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_EQ(ViewOf(run, "e").offences.recent(), 1u);
  Round(run, workers, 1, Honest("e", -50));
  ASSERT_TRUE(Eventually([&] { return ViewOf(run, "e").banned; }))
      << "one before the restart and one after it";
  ASSERT_TRUE(Unban(run, "e").ok());
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_FALSE(ViewOf(run, "e").banned);
  EXPECT_EQ(ViewOf(run, "e").offences.recent(), 0u) << "forgiven before the restart";
  workers.back() = run.Join("e");
  Round(run, workers, 2, Honest("e", -50));
  EXPECT_FALSE(ViewOf(run, "e").banned) << "the first one since";
  Round(run, workers, 3, Honest("e", -50));
  EXPECT_TRUE(Eventually([&] { return ViewOf(run, "e").banned; }));
}

TEST(Offences, OfAForgottenNameAreForgottenToo) {
  TestRun run(Options({.ban_after = 2, .within = 4}));
  const std::vector<MemberRef> workers = run.Begin(kNames, Fill([](size_t) { return 1.0F; }));
  Round(run, workers, 0, Honest("e", -50));
  ASSERT_EQ(ViewOf(run, "e").offences.recent(), 1u);
  ASSERT_TRUE(run.coordinator().Leave(workers.back(), "enough").ok());
  ASSERT_TRUE(run.admin()
                  .ControlWorker({.user = "ann", .peer = "here"},
                                 {.worker = "e", .action = WorkerAction::kForget, .reason = ""})
                  .ok());
  ASSERT_TRUE(run.TryJoin("e", "of another owner").ok());
  EXPECT_EQ(ViewOf(run, "e").offences.recent(), 0u) << "the name is new";
}

TEST(Offences, WhatIsNotFiniteCountsThoughItIsNeverMerged) {
  TestRun run(Options({.ban_after = 3, .within = 3}));
  const std::vector<MemberRef> workers = run.Begin(kNames, Fill([](size_t) { return 1.0F; }));
  for (uint64_t base = 0; base < 3; ++base) Round(run, workers, base, NotFinite());
  ASSERT_TRUE(Eventually([&] { return ViewOf(run, "e").banned; }));
  EXPECT_EQ(ViewOf(run, "e").offences.total(Offence::kNotFinite), 3u);
  EXPECT_EQ(run.coordinator().GetStatus(9).rounds.back().contributions, 4u);
}

TEST(Offences, WhatWasSentBeforeIsRejectedAndCounts) {
  TestRun run(Options({.ban_after = 2, .within = 3}));
  std::optional<EventCatcher> events(std::in_place, &run.coordinator());
  const std::vector<MemberRef> workers = run.Begin(kNames, Fill([](size_t) { return 1.0F; }));
  const std::vector<float> once = Honest("e");
  Round(run, workers, 0, once);
  EXPECT_EQ(run.coordinator().GetStatus(9).rounds.back().contributions, 5u);
  Round(run, workers, 1, once);
  EXPECT_EQ(run.coordinator().GetStatus(9).rounds.back().contributions, 4u);
  const auto rejected = events->WaitFor(EventKind::kContributionRefused);
  ASSERT_TRUE(rejected.has_value());
  EXPECT_THAT(rejected->message,
              HasSubstr("pushes for version 1 the very bytes that it pushed for version 0"));
  Round(run, workers, 2, once);
  ASSERT_TRUE(Eventually([&] { return ViewOf(run, "e").banned; }));
  EXPECT_EQ(ViewOf(run, "e").offences.total(Offence::kReplayed), 2u);
}

TEST(Offences, WithoutTheRuleAreShownAndNobodyIsBanned) {
  TestRun run(Options({}));
  const std::vector<MemberRef> workers = run.Begin(kNames, Fill([](size_t) { return 1.0F; }));
  for (uint64_t base = 0; base < 4; ++base) Round(run, workers, base, Honest("e", 50));
  const WorkerView view = ViewOf(run, "e");
  EXPECT_FALSE(view.banned);
  EXPECT_EQ(view.offences.recent(), 4u);
  EXPECT_EQ(view.offences.total(Offence::kNorm), 4u);
  EXPECT_FALSE(view.offences.last().measured) << "norms are recorded anyway; the rest has to be asked for";
}

TEST(Offences, OfMoreThanHalfSayNothing) {
  // Three of five against two: who is wrong is not for the coordinator to say.
  TestRun run(Options({.ban_after = 1, .within = 1, .cosine = 1}));
  const std::vector<MemberRef> workers = run.Begin(kNames, Fill([](size_t) { return 1.0F; }));
  Round(run, workers, 0, Honest("e", -50));
  for (const WorkerName& name : kNames) {
    EXPECT_EQ(ViewOf(run, name).offences.recent(), 0u) << name;
    EXPECT_FALSE(ViewOf(run, name).banned) << name;
  }
}

TEST(Offences, ClaimsOfManyTokensInFewStepsAreCut) {
  CoordinatorOptions options = Options({});
  options.run.merge = {.weights = MergeWeighting::kTokensSquaredPerStep};
  TestRun run(options);
  const std::vector<MemberRef> workers = run.Begin(kNames, Fill([](size_t) { return 1.0F; }));
  for (const MemberRef& worker : workers) {
    const bool liar = worker.worker == "e";
    const PushVariation claims{.tokens = liar ? uint64_t{1} << 60 : 64, .steps = liar ? 1U : 2U};
    ASSERT_TRUE(run.Push(worker, 0, Honest(worker.worker), claims).ok());
  }
  ASSERT_TRUE(run.Pull(workers[0], 0).ok());
  // Four of 64 tokens, and one step's 32: 64^2 / 2 = 2048 each, and 32^2 / 1 = 1024.
  EXPECT_EQ(run.coordinator().GetStatus(1).rounds.back().tokens, 4 * 64u + 32u);
}

TEST(Privacy, IsAccountedForInStatusRoundsAndAcrossARestart) {
  CoordinatorOptions options = Options({});
  options.run.merge = {.weights = MergeWeighting::kUniform};
  options.run.privacy = {.clip_norm = 1, .noise_multiplier = 4, .delta = 1e-5};
  TestRun run(options);
  const std::vector<MemberRef> workers = run.Begin(kNames, Fill([](size_t) { return 1.0F; }));
  for (uint64_t base = 0; base < 3; ++base) Round(run, workers, base, Honest("e"));
  for (int life = 0; life < 2; ++life) {
    const StatusView status = run.coordinator().GetStatus(9);
    ASSERT_TRUE(status.privacy.has_value());
    EXPECT_NEAR(*status.privacy->epsilon, EpsilonOf(3 / 32.0, 1e-5), 1e-9);
    EXPECT_NEAR(*status.privacy->published_epsilon, EpsilonOf(3 / 32.0 / 5, 1e-5), 1e-6);
    if (life == 0) {
      EXPECT_NEAR(status.rounds.front().epsilon, EpsilonOf(1 / 32.0, 1e-5), 1e-9);
      EXPECT_NEAR(status.rounds.back().epsilon, *status.privacy->epsilon, 1e-12);
      ASSERT_TRUE(run.Restart().ok());
    }
  }
}

}  // namespace
}  // namespace atl

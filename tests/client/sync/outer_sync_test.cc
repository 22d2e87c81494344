#include "client/sync/outer_sync.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <utility>

#include "core/schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/sync/harness.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;

absl::Status StaleBase() {
  return WithRejection(absl::FailedPreconditionError("stale"), RejectionReason::kStaleBase);
}

TEST(OuterSyncTest, RoundsAreThoseOfDirectComputation) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, SyncEnd::kFinished);
  // theta -= theta - local makes local the next version: three rounds are twelve plain steps.
  EXPECT_NEAR(h.coordinator.first_parameter(), Descend(1.0F, 5.0F, 12), 1e-5);
  EXPECT_THAT(h.observer.rounds, ElementsAre(4, 4, 4));
  EXPECT_THAT(h.observer.pulled, ElementsAre(0, 1, 2, 3));
  ASSERT_EQ(h.coordinator.headers.size(), 3u);
  EXPECT_EQ(h.coordinator.headers[1].key.base, Version(1));
  EXPECT_EQ(h.coordinator.headers[1].steps, 4u);
  EXPECT_EQ(h.coordinator.headers[1].tokens, 4u * 24);
  EXPECT_EQ(h.coordinator.headers[1].samples_consumed, 8u * 3);
}

TEST(OuterSyncTest, SeveralFragmentsTravelTogether) {
  Harness h(2);
  h.coordinator.SeedWith(1.0F);
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_NEAR(h.coordinator.first_parameter(), Descend(1.0F, 5.0F, 12), 1e-5);
  EXPECT_EQ(h.coordinator.headers.size(), 6u);
}

TEST(OuterSyncTest, LearningRatesFollowTheTokensOfTheWholeRun) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.coordinator.run.inner.warmup_steps = 6;
  h.coordinator.run.rounds = 3;
  h.coordinator.run.inner.min_learning_rate_ratio = 0.1;
  ASSERT_TRUE(h.Start().Run().ok());
  ASSERT_EQ(h.replica.learning_rates.size(), 12u);
  for (int step = 0; step < 12; ++step) {
    EXPECT_DOUBLE_EQ(h.replica.learning_rates[static_cast<size_t>(step)],
                     LearningRateAt(h.coordinator.run, step));
  }
}

TEST(OuterSyncTest, StepsThatAreTakenAtOnceAreTheSame) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.coordinator.run.inner.warmup_steps = 6;
  h.coordinator.run.inner.min_learning_rate_ratio = 0.1;
  h.coordinator.run.rounds = 3;
  h.optimizer_warmup.Begin(5);
  h.replica.at_once = 3;  // of rounds of four
  h.replica.on_step = [&](uint64_t) {
    h.clock.Advance(Seconds(1));
    return absl::OkStatus();
  };
  ASSERT_TRUE(h.Start().Run().ok());
  ASSERT_EQ(h.replica.learning_rates.size(), 12u);
  for (int step = 0; step < 12; ++step) {
    EXPECT_DOUBLE_EQ(h.replica.learning_rates[static_cast<size_t>(step)],
                     LearningRateAt(h.coordinator.run, step) * std::min(1.0, (step + 1) / 5.0));
  }
  EXPECT_THAT(h.observer.rounds, ElementsAre(4, 4, 4));
  EXPECT_EQ(h.coordinator.headers[1].tokens, 4u * 24);
  EXPECT_EQ(h.time.spent()[TimeUse::kCompute], 12);
  EXPECT_NEAR(h.worker_status.progress().tokens_per_second, 24, 1e-9);
}

TEST(OuterSyncTest, AStepAmongSeveralAtOnceThatIsNotFiniteDropsTheRound) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.replica.at_once = 4;
  h.replica.on_step = [](uint64_t step) {
    return step == 3 ? absl::FailedPreconditionError("loss is nan") : absl::OkStatus();
  };
  ASSERT_TRUE(h.Start().Run().ok());
  EXPECT_EQ(h.observer.not_finite, 1);
  EXPECT_NEAR(h.coordinator.first_parameter(), Descend(1.0F, 5.0F, 12), 1e-5);
}

TEST(OuterSyncTest, AStepWithoutMemoryDropsItsRoundAndEndsTheWorkerWithTheRemedy) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.replica.on_step = [](uint64_t step) {
    return step == 6 ? absl::ResourceExhaustedError("out of memory; use a smaller batch") : absl::OkStatus();
  };
  const auto end = h.Start().Run();
  EXPECT_EQ(end.status(), absl::ResourceExhaustedError("out of memory; use a smaller batch"));
  EXPECT_EQ(h.coordinator.headers.size(), 1u) << "the round before";
  EXPECT_EQ(h.observer.not_finite, 0) << "the training has not diverged";
}

TEST(OuterSyncTest, AStalePushGivesItsContentBackAndAdoptsTheHead) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.coordinator.finish_at = 2;
  h.coordinator.Fail("Push", {.status = StaleBase(), .before = [&] { h.coordinator.PublishWithout(0.5F); }});
  ASSERT_TRUE(h.Start().Run().ok());
  EXPECT_THAT(h.observer.pushed, ElementsAre(PushResultKind::kRejected, PushResultKind::kAccepted));
  // The head moved from 1 to 1.5 without this worker; its second push carries both pseudo-gradients.
  const float lost = 1.0F - Descend(1.0F, 5.0F, 4);
  const float second = 1.5F - Descend(1.5F, 5.0F, 4);
  EXPECT_NEAR(h.coordinator.first_parameter(), 1.5F - (lost + second), 1e-5);
  EXPECT_EQ(h.coordinator.headers[1].key.base, Version(1));
}

TEST(OuterSyncTest, ANewConfigurationOfAnyFragmentComesFirst) {
  Harness h(2);
  h.coordinator.SeedWith(1.0F);
  h.coordinator.Fail("Pull", {});
  // Between the rounds of fragment 0 and of fragment 1 an operator has set something.
  h.coordinator.Fail("Pull", {.before = [&] { h.coordinator.config_version = 2; }});
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, SyncEnd::kReconfigured);
  EXPECT_EQ(h.coordinator.Calls("Push"), 0u);
}

TEST(OuterSyncTest, AnAnswerThatIsLostForTooLongCountsAtMostOnce) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.coordinator.finish_at = 35;
  // The push counts as version 1. Its answer is lost, and the coordinator is away until it has forgotten it.
  h.coordinator.Fail("Push", {.status = absl::UnavailableError("reset"), .applied = true});
  h.coordinator.Fail("GetPushStatus", {.status = absl::UnavailableError("away"), .before = [&] {
                                         while (h.coordinator.head() < Version(34)) {
                                           h.coordinator.PublishWithout(0);
                                         }
                                         h.coordinator.Forget();
                                       }});
  ASSERT_TRUE(h.Start().Run().ok());
  ASSERT_EQ(h.coordinator.headers.size(), 2u);
  EXPECT_EQ(h.coordinator.headers[1].key.base, Version(34));
  EXPECT_NEAR(h.coordinator.first_parameter(), Descend(1.0F, 5.0F, 8), 1e-5) << "two rounds, not three";
  EXPECT_THAT(h.log.str(), HasSubstr("no longer knows whether it counted"));
  EXPECT_THAT(h.observer.pushed, ElementsAre(PushResultKind::kDropped, PushResultKind::kAccepted));
}

TEST(OuterSyncTest, WhatEncodingLosesIsCarriedOn) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.coordinator.run.push_codec = CodecKind::kBf16;
  ASSERT_TRUE(h.Start().Run().ok());
  const float exact = Descend(1.0F, 5.0F, 12);
  // The sum of what was sent is within one rounding of the sum of what was meant, whatever the number of
  // rounds.
  EXPECT_NEAR(h.coordinator.first_parameter() - h.sync->encoder(0).residual()[0], exact, 2e-3);
  EXPECT_NE(h.sync->encoder(0).residual()[0], 0.0F);
}

TEST(OuterSyncTest, WithoutErrorFeedbackNothingIsCarried) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.coordinator.run.error_feedback = false;
  h.coordinator.finish_at = 2;
  h.coordinator.Fail("Push", {.status = StaleBase(), .before = [&] { h.coordinator.PublishWithout(0.5F); }});
  ASSERT_TRUE(h.Start().Run().ok());
  EXPECT_NEAR(h.coordinator.first_parameter(), Descend(1.5F, 5.0F, 4), 1e-5);
}

TEST(OuterSyncTest, AResidualThatStartsAnewAtEveryVersionCarriesNothing) {
  const auto end_of = [](uint32_t reset, bool error_feedback) {
    Harness h;
    h.coordinator.SeedWith(1.0F);
    h.coordinator.run.push_codec = CodecKind::kBf16;
    h.coordinator.run.error_feedback = error_feedback;
    h.coordinator.run.error_feedback_reset = reset;
    EXPECT_TRUE(h.Start().Run().ok());
    return std::pair(h.coordinator.first_parameter(), h.sync->encoder(0).residual()[0]);
  };
  EXPECT_EQ(end_of(1, true), end_of(0, false));
  EXPECT_EQ(end_of(100, true), end_of(0, true));
  EXPECT_NE(end_of(0, true), end_of(0, false));
}

TEST(OuterSyncTest, TheWorkerWithTheGrantSeedsTheRun) {
  Harness h;
  h.coordinator.grant_seed = true;
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(h.coordinator.Calls("SeedParameters"), 1u);
  EXPECT_NEAR(h.coordinator.first_parameter(), Descend(1.0F, 5.0F, 12), 1e-5);
}

TEST(OuterSyncTest, AGrantThatPassesOnIsTakenUpWhileWaiting) {
  Harness h;
  h.coordinator.on_not_yet = [&](size_t times) {
    if (times != 3) return;
    h.coordinator.heartbeat_reply.seed_granted = true;
    ASSERT_TRUE(h.heartbeater.Beat().ok());
    h.coordinator.heartbeat_reply.seed_granted = false;
  };
  ASSERT_TRUE(h.Start().Run().ok());
  EXPECT_EQ(h.coordinator.Calls("SeedParameters"), 1u);
  EXPECT_EQ(h.coordinator.head(), Version(3));
}

TEST(OuterSyncTest, ASeedWhoseAnswerWasLostIsFoundByThePull) {
  Harness h;
  h.coordinator.grant_seed = true;
  h.coordinator.Fail("SeedParameters", {.status = absl::UnavailableError("reset"), .applied = true});
  ASSERT_TRUE(h.Start().Run().ok());
  EXPECT_EQ(h.coordinator.Calls("SeedParameters"), 1u);
}

TEST(OuterSyncTest, EvaluatesPublishedParametersWhenAsked) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.coordinator.evaluate_all = true;
  ASSERT_TRUE(h.Start().Run().ok());
  ASSERT_TRUE(h.heartbeater.Beat().ok());
  ASSERT_EQ(h.coordinator.evaluations.size(), 4u);
  EXPECT_EQ(h.coordinator.evaluations[0], (EvaluationReport{Version(0), 1.0, 5}));
  // The last version is evaluated although nothing is trained on it.
  EXPECT_EQ(h.coordinator.evaluations[3].version, Version(3));
  EXPECT_FLOAT_EQ(static_cast<float>(h.coordinator.evaluations[3].loss), h.coordinator.first_parameter());
}

TEST(OuterSyncTest, AnEvaluationThatIsNotFiniteDoesNotEndTheWorker) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.coordinator.evaluate_all = true;
  h.replica.evaluation_error = absl::OutOfRangeError("the loss is nan");
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, SyncEnd::kFinished);
  EXPECT_EQ(h.replica.evaluations, 4u);
  ASSERT_TRUE(h.heartbeater.Beat().ok());
  EXPECT_TRUE(h.coordinator.evaluations.empty());
  EXPECT_THAT(h.log.str(), HasSubstr("atollctl checkpoint restore"));
}

TEST(OuterSyncTest, EverySecondIsInOneUse) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.coordinator.evaluate_all = true;
  h.replica.on_step = [&](uint64_t) {
    h.clock.Advance(Seconds(2));
    return absl::OkStatus();
  };
  h.replica.on_evaluate = [&] { h.clock.Advance(Seconds(7)); };
  for (int i = 0; i < 3; ++i) {
    h.coordinator.Fail("Push", {.before = [&] { h.clock.Advance(Seconds(5)); }});
  }
  h.coordinator.Fail(
      "Pull", {.status = absl::UnavailableError("away"), .before = [&] { h.clock.Advance(Seconds(1)); }});
  const MonoTime begin = h.clock.Now();
  ASSERT_TRUE(h.Start().Run().ok());
  const TimeSpent spent = h.time.spent();
  EXPECT_NEAR(spent.total(), ToSeconds(h.clock.Now() - begin), 1e-6);
  EXPECT_EQ(spent[TimeUse::kCompute], 2.0 * static_cast<double>(h.replica.steps));
  EXPECT_EQ(spent[TimeUse::kEvaluate], 4 * 7);
  EXPECT_EQ(spent[TimeUse::kPush], 3 * 5);
  EXPECT_EQ(spent[TimeUse::kOverdue], 0);
  EXPECT_GT(spent[TimeUse::kWait], 1) << "the call that failed, and the pause after it";
  EXPECT_EQ(spent[TimeUse::kOther], 0);
}

TEST(OuterSyncTest, DrainFinishesTheRoundAndPushes) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.replica.on_step = [&](uint64_t step) {
    if (step == 2) {
      h.coordinator.heartbeat_reply.command = WorkerCommand::kDrain;
      EXPECT_TRUE(h.heartbeater.Beat().ok());
    }
    return absl::OkStatus();
  };
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, SyncEnd::kDrained);
  EXPECT_EQ(h.replica.steps, 4u);
  EXPECT_EQ(h.coordinator.headers.size(), 1u);
}

TEST(OuterSyncTest, TheReportedSpeedDoesNotBeginAgainWithEachRound) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  std::vector<double> speeds;
  h.replica.on_step = [&](uint64_t step) {
    if (step > 1) speeds.push_back(h.worker_status.progress().tokens_per_second);
    // The first step of the second and of the third round is a hundred times as fast as the others.
    h.clock.Advance(step == 5 || step == 9 ? Seconds(0.01) : Seconds(1));
    return absl::OkStatus();
  };
  ASSERT_TRUE(h.Start().Run().ok());
  ASSERT_EQ(speeds.size(), 11u);
  EXPECT_THAT(speeds, Each(AllOf(Ge(23.9), Le(32))));
}

TEST(OuterSyncTest, ReportsTheOperationsOfTheModel) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.replica.cost = {.flops_per_token = 500, .peak_flops_per_second = 1e6};
  h.replica.on_step = [&](uint64_t step) {
    h.clock.Advance(Seconds(1));
    return absl::OkStatus();
  };
  ASSERT_TRUE(h.Start().Run().ok());
  const ProgressReport progress = h.worker_status.progress();
  ASSERT_GT(progress.tokens_per_second, 0);
  EXPECT_DOUBLE_EQ(progress.model_flops_per_second, 500 * progress.tokens_per_second);
  EXPECT_EQ(progress.peak_flops_per_second, 1e6);
}

TEST(OuterSyncTest, StopEndsAfterTheInnerStep) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.replica.on_step = [&](uint64_t step) {
    if (step == 2) h.worker_status.RequestStop();
    return absl::OkStatus();
  };
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, SyncEnd::kStopped);
  EXPECT_EQ(h.replica.steps, 2u);
  EXPECT_TRUE(h.coordinator.headers.empty());
}

TEST(OuterSyncTest, ResyncDropsTheRound) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.coordinator.finish_at = 1;
  h.replica.on_step = [&](uint64_t step) {
    if (step == 3) {
      h.coordinator.heartbeat_reply.command = WorkerCommand::kResync;
      EXPECT_TRUE(h.heartbeater.Beat().ok());
    }
    return absl::OkStatus();
  };
  ASSERT_TRUE(h.Start().Run().ok());
  EXPECT_EQ(h.replica.steps, 3u + 4u);
  EXPECT_EQ(h.coordinator.headers.at(0).samples_consumed, 4u * 3)
      << "the dropped steps' samples are due again";
  EXPECT_NEAR(h.coordinator.first_parameter(), Descend(1.0F, 5.0F, 4), 1e-5);
}

TEST(OuterSyncTest, ARoundThatIsNotFiniteIsDropped) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.replica.on_step = [](uint64_t step) {
    return step == 3 || step == 5 ? absl::FailedPreconditionError("loss is nan") : absl::OkStatus();
  };
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, SyncEnd::kFinished);
  EXPECT_EQ(h.observer.not_finite, 2);
  EXPECT_NEAR(h.coordinator.first_parameter(), Descend(1.0F, 5.0F, 12), 1e-5);
}

TEST(OuterSyncTest, ThreeInARowEndIt) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.replica.on_step = [](uint64_t) { return absl::FailedPreconditionError("loss is nan"); };
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, SyncEnd::kDiverged);
  EXPECT_EQ(h.observer.not_finite, 3);
  EXPECT_TRUE(h.coordinator.headers.empty());
}

TEST(OuterSyncTest, ARejectionAsNotFiniteForgetsTheResidual) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.coordinator.finish_at = 1;
  h.coordinator.Fail("Push", {.status = WithRejection(absl::InvalidArgumentError("nan in the payload"),
                                                      RejectionReason::kNotFinite)});
  ASSERT_TRUE(h.Start().Run().ok());
  EXPECT_EQ(h.observer.not_finite, 1);
  EXPECT_THAT(h.sync->encoder(0).residual(), Each(0.0F));
  EXPECT_NEAR(h.coordinator.first_parameter(), Descend(1.0F, 5.0F, 4), 1e-5);
}

TEST(OuterSyncTest, AReturningWorkerDoesNotPushTwiceOnOneBase) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.coordinator.finish_at = 2;
  h.coordinator.accepted_at_join = {{FragmentId(0), Version(0), 0}};
  h.coordinator.on_not_yet = [&](size_t) { h.coordinator.PublishWithout(0.25F); };
  ASSERT_TRUE(h.Start().Run().ok());
  ASSERT_EQ(h.coordinator.headers.size(), 1u);
  EXPECT_EQ(h.coordinator.headers[0].key.base, Version(1));
}

TEST(OuterSyncTest, AnotherContentForTheBaseWasAcceptedSoItWaitsForTheNextVersion) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.coordinator.finish_at = 2;
  h.coordinator.Fail("Push", {.status = WithRejection(absl::AlreadyExistsError("accepted before"),
                                                      RejectionReason::kAlreadyPushed)});
  h.coordinator.on_not_yet = [&](size_t) { h.coordinator.PublishWithout(0.25F); };
  ASSERT_TRUE(h.Start().Run().ok());
  ASSERT_EQ(h.coordinator.headers.size(), 2u);
  EXPECT_EQ(h.coordinator.headers[0].key.base, Version(0));
  EXPECT_EQ(h.coordinator.headers[1].key.base, Version(1));
}

TEST(OuterSyncTest, AWaitIsLoggedAtOnceAndThenOnceAMinute) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.coordinator.hold_rounds = true;
  h.coordinator.on_not_yet = [&](size_t times) {
    h.clock.Advance(Seconds(10));
    if (times < 8) return;
    h.coordinator.hold_rounds = false;
    h.coordinator.PublishHeld();
  };
  ASSERT_TRUE(h.Start().Run().ok());
  size_t lines = 0;
  std::istringstream log(h.log.str());
  for (std::string line; std::getline(log, line);) {
    if (line.find("waits for parameters") == std::string::npos) continue;
    ++lines;
    EXPECT_THAT(line, AllOf(HasSubstr("the others"), HasSubstr("\"base\"")));
  }
  EXPECT_EQ(lines, 2u) << "of 80 s; " << h.log.str();
}

TEST(OuterSyncTest, TheCoordinatorMayBeAwayBetweenAnyTwoCalls) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  for (int i = 0; i < 4; ++i) h.coordinator.Fail("Pull", {.status = absl::UnavailableError("away")});
  for (int i = 0; i < 3; ++i) h.coordinator.Fail("Push", {.status = absl::UnavailableError("away")});
  h.coordinator.Fail("GetPushStatus", {.status = absl::UnavailableError("away")});
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(h.sleeper.slept.size(), 8u);
  EXPECT_NEAR(h.coordinator.first_parameter(), Descend(1.0F, 5.0F, 12), 1e-5);
  EXPECT_THAT(h.log.str(), HasSubstr("waiting for the coordinator"));
}

TEST(OuterSyncTest, AHeartbeatThatIsRejectedMakesItJoinAgainInTheMiddleOfARound) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.coordinator.finish_at = 1;
  h.replica.on_step = [&](uint64_t step) {
    if (step == 2) {
      h.coordinator.Fail("Heartbeat", {.status = WithRejection(absl::NotFoundError("join again"),
                                                               RejectionReason::kNotAMember)});
      EXPECT_FALSE(h.heartbeater.Beat().ok());
    }
    return absl::OkStatus();
  };
  ASSERT_TRUE(h.Start().Run().ok());
  EXPECT_EQ(h.observer.rejoined, 1);
  EXPECT_EQ(h.replica.steps, 4u) << "the round went on";
}

TEST(OuterSyncTest, ASupersededWorkerEnds) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.replica.on_step = [&](uint64_t step) {
    if (step == 2) {
      h.coordinator.Fail("Heartbeat", {.status = WithRejection(absl::FailedPreconditionError("superseded"),
                                                               RejectionReason::kSuperseded)});
      EXPECT_FALSE(h.heartbeater.Beat().ok());
    }
    return absl::OkStatus();
  };
  EXPECT_EQ(RejectionReasonOf(h.Start().Run().status()), RejectionReason::kSuperseded);
  EXPECT_EQ(h.replica.steps, 2u);
}

TEST(OuterSyncTest, AnotherEpochEndsTheLoop) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.replica.on_step = [&](uint64_t step) {
    if (step == 2) h.coordinator.Restore();
    return absl::OkStatus();
  };
  EXPECT_EQ(RejectionReasonOf(h.Start().Run().status()), RejectionReason::kWrongEpoch);
}

TEST(OuterSyncTest, AModelLaidOutDifferentlyIsRejected) {
  const auto layout =
      LayOutFragments(FakeReplica::MakeManifest(), {{FragmentId(0), Version(0), 5, ""}}, SyncOptions());
  EXPECT_EQ(layout.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(layout.status().message()), HasSubstr("lay the model out differently"));
}

/// As a heartbeat brings it, in the middle of inner step `step`.
void CommandAt(Harness& h, uint64_t step, const HeartbeatReply& reply) {
  h.replica.on_step = [&h, step, reply](uint64_t now) {
    if (now == step) {
      h.coordinator.heartbeat_reply = reply;
      EXPECT_TRUE(h.heartbeater.Beat().ok());
      h.coordinator.heartbeat_reply = {};
    }
    return absl::OkStatus();
  };
}

TEST(OuterSyncTest, DrainAtOncePushesWhatIsDone) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  CommandAt(h, 2, {.command = WorkerCommand::kDrain, .at_once = true});
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, SyncEnd::kDrained);
  ASSERT_EQ(h.coordinator.headers.size(), 1u);
  EXPECT_EQ(h.coordinator.headers[0].steps, 2u);
  EXPECT_EQ(h.coordinator.headers[0].tokens, 48u);
  EXPECT_NEAR(h.coordinator.first_parameter(), Descend(1.0F, 5.0F, 2), 1e-5);
}

TEST(OuterSyncTest, DataThatIsOverDrains) {
  for (const uint64_t over_at : {1, 3, 5}) {
    Harness h;
    h.coordinator.SeedWith(1.0F);
    h.replica.on_step = [&](uint64_t step) { return step < over_at ? absl::OkStatus() : NoMoreSteps(); };
    const auto end = h.Start().Run();
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_EQ(*end, SyncEnd::kDrained) << over_at;
    EXPECT_EQ(h.replica.steps, over_at);
    EXPECT_EQ(h.observer.not_finite, 0);
    uint64_t pushed = 0;
    for (const PushHeader& header : h.coordinator.headers) pushed += header.steps;
    EXPECT_EQ(pushed, over_at - 1);
  }
}

TEST(OuterSyncTest, AReplicaWithoutHeldOutTextHasNoEvaluation) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.coordinator.evaluate_all = true;
  h.replica.evaluation_error = absl::UnimplementedError("none");
  ASSERT_TRUE(h.Start().Run().ok());
  EXPECT_EQ(h.replica.evaluations, 4u);
  EXPECT_TRUE(h.worker_status.evaluations().empty());
  EXPECT_EQ(h.log.str().find("diverged"), std::string::npos);
}

TEST(OuterSyncTest, ARestartFinishesTheRoundUnlessAtOnce) {
  for (const bool at_once : {false, true}) {
    Harness h;
    h.coordinator.SeedWith(1.0F);
    CommandAt(h, 3, {.command = WorkerCommand::kRestart, .at_once = at_once});
    const auto end = h.Start().Run();
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_EQ(*end, SyncEnd::kRestart);
    EXPECT_EQ(h.coordinator.headers.at(0).steps, at_once ? 3u : 4u);
  }
}

TEST(OuterSyncTest, ADrainBeforeTheFirstStepPushesNothing) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.coordinator.evaluate_all = true;
  h.coordinator.Fail("Pull", {.before = [&] {
                       h.coordinator.heartbeat_reply = {.command = WorkerCommand::kDrain, .at_once = true};
                       EXPECT_TRUE(h.heartbeater.Beat().ok());
                     }});
  EXPECT_EQ(*h.Start().Run(), SyncEnd::kDrained);
  EXPECT_TRUE(h.coordinator.headers.empty());
  EXPECT_EQ(h.replica.steps, 0u);
}

TEST(OuterSyncTest, StopPushesNothingEvenAtOnce) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  CommandAt(h, 3, {.command = WorkerCommand::kStop, .at_once = true});
  EXPECT_EQ(*h.Start().Run(), SyncEnd::kStopped);
  EXPECT_TRUE(h.coordinator.headers.empty());
}

TEST(OuterSyncTest, APausedRunIsWaitedForInTheMiddleOfARound) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.coordinator.finish_at = 1;
  CommandAt(h, 2, {.state = RunState::kPaused});
  h.sleeper.on_sleep = [&](size_t times) {
    EXPECT_EQ(h.replica.steps, 2u);
    EXPECT_THAT(h.worker_status.progress().waiting_for, HasSubstr("paused"));
    h.coordinator.heartbeat_reply.state = times < 5 ? RunState::kPaused : RunState::kTraining;
    EXPECT_TRUE(h.heartbeater.Beat().ok()) << "the lease is kept";
  };
  EXPECT_EQ(*h.Start().Run(), SyncEnd::kFinished);
  EXPECT_EQ(h.sleeper.slept.size(), 5u);
  EXPECT_EQ(h.replica.steps, 4u);
  EXPECT_EQ(h.worker_status.progress().waiting_for, "");
  EXPECT_NEAR(h.coordinator.first_parameter(), Descend(1.0F, 5.0F, 4), 1e-5);
}

TEST(OuterSyncTest, ADrainDoesNotOutwaitAPause) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  CommandAt(h, 2, {.state = RunState::kPaused});
  h.sleeper.on_sleep = [&](size_t) {
    h.coordinator.heartbeat_reply = {.state = RunState::kPaused, .command = WorkerCommand::kDrain};
    EXPECT_TRUE(h.heartbeater.Beat().ok());
  };
  EXPECT_EQ(*h.Start().Run(), SyncEnd::kDrained);
  EXPECT_EQ(h.coordinator.headers.at(0).steps, 2u);
}

TEST(OuterSyncTest, AStoppedRunIsLeft) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  CommandAt(h, 2, {.state = RunState::kStopped});
  EXPECT_EQ(*h.Start().Run(), SyncEnd::kRunStopped);
  EXPECT_TRUE(h.coordinator.headers.empty());

  Harness waiting;
  waiting.coordinator.SeedWith(1.0F);
  waiting.coordinator.hold_rounds = true;
  waiting.coordinator.on_not_yet = [&](size_t) { waiting.coordinator.state = RunState::kStopped; };
  EXPECT_EQ(*waiting.Start().Run(), SyncEnd::kRunStopped);
}

TEST(OuterSyncTest, ThePlanSaysWhereInTheDataToTrain) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.coordinator.finish_at = 2;
  h.coordinator.plan_data = DataPart{3, 4, 600};
  ASSERT_TRUE(h.Start().Run().ok());
  EXPECT_THAT(h.replica.partitions, ElementsAre(3, 3));
  ASSERT_EQ(h.coordinator.headers.size(), 2u);
  EXPECT_EQ(h.coordinator.headers[0].partition, 3u);
  EXPECT_EQ(h.coordinator.headers[0].samples_consumed, 600u + 4 * 3);
}

TEST(OuterSyncTest, WithoutAWordInThePlanItStaysInItsPart) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.coordinator.partition = 2;
  ASSERT_TRUE(h.Start().Run().ok());
  EXPECT_EQ(h.coordinator.headers[1].partition, 2u);
  Harness local;
  local.coordinator.SeedWith(1.0F);
  local.coordinator.partition.reset();
  ASSERT_TRUE(local.Start().Run().ok());
  EXPECT_EQ(local.coordinator.headers[1].partition, std::nullopt);
}

TEST(OuterSyncTest, ALateContributionIsFollowedByTheNewestVersion) {
  Harness h;
  h.coordinator.SeedWith(1.0F);
  h.coordinator.accept_late_by = 2;
  h.coordinator.finish_at = 5;
  h.coordinator.Fail("Push", {.before = [&] {
                       h.coordinator.PublishWithout(0.25F);
                       h.coordinator.PublishWithout(0.25F);
                     }});
  ASSERT_TRUE(h.Start().Run().ok());
  ASSERT_EQ(h.coordinator.headers.size(), 3u);
  EXPECT_EQ(h.coordinator.headers[0].key.base, Version(0));
  EXPECT_EQ(h.coordinator.headers[1].key.base, Version(3)) << "no wait for version 1, which is past";
  EXPECT_THAT(h.observer.pushed, Each(PushResultKind::kAccepted));
  EXPECT_THAT(h.sync->encoder(0).residual(), Each(0.0F)) << "nothing was given back";
}

}  // namespace
}  // namespace atl

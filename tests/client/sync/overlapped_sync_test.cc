#include "client/sync/overlapped_sync.h"

#include <set>

#include "common/file.h"
#include "core/codec.h"
#include "core/schedule.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/sync/streaming_harness.h"

namespace atl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::Status Stale() {
  return WithRejection(absl::FailedPreconditionError("stale"), RejectionReason::kStaleBase);
}
/// A final error: the loop ends there as if the process had been killed.
absl::Status Killed() { return absl::UnauthenticatedError("killed here"); }

/// Commands as a heartbeat brings them.
void Command(StreamingHarness& h, const HeartbeatReply& reply) {
  h.coordinator.heartbeat_reply = reply;
  ASSERT_TRUE(h.heartbeater.Beat().ok());
}

/// `then` before so-manieth inner step; the run is stopped at `last`.
void At(StreamingHarness& h, std::map<uint64_t, std::function<void()>> then, uint64_t last) {
  h.fake->on_step = [&h, then = std::move(then), last](uint64_t step) {
    if (const auto it = then.find(step); it != then.end()) it->second();
    if (step == last) h.worker_status.RequestStop();
    return absl::OkStatus();
  };
}

/// No exchange advances from the first inner step to step `until`; the run is stopped at `last`.
void HoldExchanges(StreamingHarness& h, uint64_t until, uint64_t last) {
  At(h,
     {{1, [&h] { h.runner->hold = true; }},
      {until,
       [&h] {
         h.runner->RunHeld();
         h.runner->hold = false;
       }}},
     last);
}

/// Fragment 0 moves without its first push, which is then stale.
void RejectFirstPush(StreamingHarness& h) {
  h.coordinator.before_push = [&h, pushes = 0](const PushHeader& header) mutable {
    if (header.key.fragment != FragmentId(0) || ++pushes != 1) return absl::OkStatus();
    h.coordinator.PublishWithout(FragmentId(0), 0.5F);
    return Stale();
  };
}

std::vector<uint64_t> BasesOf(const StreamingHarness& h, uint32_t fragment) {
  std::vector<uint64_t> bases;
  for (const PushHeader& header : h.coordinator.headers()) {
    if (header.key.fragment.value() == fragment) bases.push_back(header.key.base.value());
  }
  return bases;
}

TEST(OverlappedSync, FragmentsAreExchangedInTurnForTheirOwnSteps) {
  StreamingHarness h;
  At(h, {}, 12);
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  // Pushed after steps 1, 5, 9 and 3, 7, 11; used one step later.
  EXPECT_THAT(BasesOf(h, 0), ElementsAre(0, 1, 2));
  EXPECT_THAT(BasesOf(h, 1), ElementsAre(0, 1, 2));
  const auto headers = h.coordinator.headers();
  EXPECT_EQ(headers[0].steps, 1u);
  EXPECT_EQ(headers[1].steps, 3u);
  EXPECT_EQ(headers[2].steps, 4u) << "since its last push, whatever was used meanwhile";
  EXPECT_EQ(headers[2].tokens, 4u * 24);
  EXPECT_EQ(headers[2].samples_consumed, 5u * 3);
  EXPECT_THAT(h.observer.used[0], ElementsAre(0, 1, 1));
  EXPECT_THAT(h.observer.used[1], ElementsAre(1, 1, 1));
  EXPECT_THAT(h.observer.skipped, IsEmpty());
}

TEST(OverlappedSync, TheBaseIsWhatWasPublishedAndNeverTheBlend) {
  StreamingHarness h;
  At(h, {}, 7);
  ASSERT_TRUE(h.Start().Run().ok());
  // theta' = theta - (theta - local) = local at the push; blended with one step more.
  const float first = Descend(1.0F, 5.0F, 1);
  float local = 0.5F * first + 0.5F * Descend(1.0F, 5.0F, 2);
  local = Descend(local, 5.0F, 3);  // steps 3, 4, 5: the second push
  EXPECT_NEAR(h.coordinator.first_parameter(0), local, 1e-6);
}

TEST(OverlappedSync, TrainingDoesNotWaitForALateAnswer) {
  StreamingHarness h;
  HoldExchanges(h, 4, 6);
  ASSERT_TRUE(h.Start().Run().ok());
  EXPECT_EQ(h.fake->steps, 6u);
  // The push of fragment 0 after step 1 left after step 3 and was used after step 4: three steps old.
  EXPECT_THAT(h.observer.used, Contains(ElementsAre(0, 1, 3)));
  EXPECT_THAT(h.observer.skipped, IsEmpty());
}

TEST(OverlappedSync, AFragmentThatIsDueIsPushedAsSoonAsItIsAnswered) {
  StreamingHarness h;
  HoldExchanges(h, 6, 14);
  ASSERT_TRUE(h.Start().Run().ok());
  EXPECT_THAT(h.observer.skipped, IsEmpty());
  EXPECT_THAT(BasesOf(h, 0), ElementsAre(0, 1, 2, 3));
  std::vector<uint32_t> steps;
  for (const PushHeader& header : h.coordinator.headers()) {
    if (header.key.fragment == FragmentId(0)) steps.push_back(header.steps);
  }
  EXPECT_THAT(steps, ElementsAre(1, 5, 3, 4)) << "due after 1, 5, 9 and 13, pushed after 6 in place of 5";
}

TEST(OverlappedSync, AFragmentIsNeverPushedTwiceOnOneBase) {
  StreamingHarness h;
  HoldExchanges(h, 8, 14);
  ASSERT_TRUE(h.Start().Run().ok());
  EXPECT_THAT(h.observer.skipped, ElementsAre(0));  // due after step 5, passed over after 7
  EXPECT_THAT(BasesOf(h, 0), ElementsAre(0, 1, 2));
  // What was trained while the push was unanswered is part of the next one.
  EXPECT_EQ(h.coordinator.headers()[3].key.fragment, FragmentId(0));
  uint64_t tokens = 0;
  for (const PushHeader& header : h.coordinator.headers()) {
    if (header.key.fragment == FragmentId(0)) tokens += header.tokens;
  }
  EXPECT_EQ(tokens, 13u * 24) << "pushed after step 13 last";
}

TEST(OverlappedSync, NoMoreThanTheAllowedNumberIsInFlight) {
  RunOptions run = StreamingRun();
  run.sync.max_in_flight = 1;
  StreamingHarness h(run);
  HoldExchanges(h, 5, 8);
  ASSERT_TRUE(h.Start().Run().ok());
  // Fragment 1, due after step 3, goes when fragment 0 has been answered.
  const auto headers = h.coordinator.headers();
  ASSERT_GE(headers.size(), 2u);
  EXPECT_EQ(headers[1].key.fragment, FragmentId(1));
  EXPECT_EQ(headers[1].steps, 5u);
  EXPECT_THAT(h.observer.skipped, IsEmpty());
}

TEST(OverlappedSync, ARejectedPushComesBackInTheNextAndLeavesNothingBehind) {
  StreamingHarness h;
  RejectFirstPush(h);
  std::vector<float> local;
  At(h, {{2, [&] { local.push_back(h.fake->first()); }}}, 8);
  ASSERT_TRUE(h.Start().Run().ok());
  EXPECT_THAT(h.observer.pushed, Contains(PushResultKind::kRejected));
  ASSERT_EQ(local.size(), 1u);
  EXPECT_FLOAT_EQ(local[0], 1.5F) << "the head, without blend: the progress is in the residual";
  // The next contribution carries both.
  const auto bases = BasesOf(h, 0);
  ASSERT_GE(bases.size(), 2u);
  EXPECT_EQ(bases[1], 1u);
  const float lost = 1.0F - Descend(1.0F, 5.0F, 1);
  const auto headers = h.coordinator.headers();
  const auto payloads = h.coordinator.payloads();
  for (size_t i = 1; i < headers.size(); ++i) {
    if (headers[i].key != PushKey{FragmentId(0), Version(1), 0}) continue;
    std::vector<float> sent(512);
    CodecFor(headers[i].codec).DecodeRange(payloads[i], sent.size(), 0, sent);
    const float second = 1.5F - Descend(1.5F, 5.0F, static_cast<int>(headers[i].steps));
    EXPECT_NEAR(sent[0], lost + second, 1e-5);
  }
}

TEST(OverlappedSync, StepsThatARejectionDropsAreNotClaimed) {
  StreamingHarness h;
  RejectFirstPush(h);
  // Pushed after step 1; refused, and the head adopted, after step 3.
  HoldExchanges(h, 3, 8);
  ASSERT_TRUE(h.Start().Run().ok());
  const auto headers = h.coordinator.headers();
  const auto payloads = h.coordinator.payloads();
  const auto next = std::ranges::find(headers, PushKey{FragmentId(0), Version(1), 0}, &PushHeader::key);
  ASSERT_NE(next, headers.end());
  EXPECT_EQ(next->steps, 3u) << "steps 4, 5 and 6: 2 and 3 were dropped with the local parameters";
  EXPECT_EQ(next->tokens, 3u * 24);
  std::vector<float> sent(512);
  CodecFor(next->codec)
      .DecodeRange(payloads[static_cast<size_t>(next - headers.begin())], sent.size(), 0, sent);
  const float lost = 1.0F - Descend(1.0F, 5.0F, 1);
  EXPECT_NEAR(sent[0], lost + 1.5F - Descend(1.5F, 5.0F, 3), 1e-5);
}

TEST(OverlappedSync, ALostAnswerIsAskedForAndNothingIsSentTwice) {
  StreamingHarness h;
  int pushes = 0;
  h.coordinator.after_push = [&](const PushHeader&) {
    return ++pushes == 1 ? absl::UnavailableError("reset") : absl::OkStatus();
  };
  At(h, {}, 8);
  ASSERT_TRUE(h.Start().Run().ok());
  EXPECT_EQ(h.observer.retries, 1);
  EXPECT_THAT(BasesOf(h, 0), ElementsAre(0, 1));
  EXPECT_THAT(h.observer.used[0], ElementsAre(0, 1, 1));
}

TEST(OverlappedSync, AnAnswerThatIsLostForTooLongCountsAtMostOnce) {
  StreamingHarness h;
  int pushes = 0;
  h.coordinator.after_push = [&](const PushHeader&) {
    if (++pushes != 1) return absl::OkStatus();
    for (int i = 0; i < 33; ++i) h.coordinator.PublishWithout(FragmentId(0), 0.0F);
    h.coordinator.Forget();
    return absl::UnavailableError("reset");
  };
  At(h, {}, 7);
  ASSERT_TRUE(h.Start().Run().ok());
  EXPECT_THAT(BasesOf(h, 0), ElementsAre(0, 34));
  // As in TheBaseIsWhatWasPublishedAndNeverTheBlend: the first push counted once.
  const float first = Descend(1.0F, 5.0F, 1);
  const float local = 0.5F * first + 0.5F * Descend(1.0F, 5.0F, 2);
  EXPECT_NEAR(h.coordinator.first_parameter(0), Descend(local, 5.0F, 3), 1e-5);
  EXPECT_EQ(h.observer.pushed.front(), PushResultKind::kDropped);
  EXPECT_THAT(h.log.str(), HasSubstr("no longer knows whether it counted"));
}

TEST(OverlappedSync, ExchangesTakeNoneOfTheTrainingsTime) {
  StreamingHarness h;
  h.coordinator.before_push = [&](const PushHeader&) {
    h.clock.Advance(Seconds(3));
    return absl::OkStatus();
  };
  At(h, {}, 8);
  ASSERT_TRUE(h.Start().Run().ok());
  for (const TimeUse use : {TimeUse::kPush, TimeUse::kPull, TimeUse::kWait}) {
    EXPECT_EQ(h.time.spent()[use], 0) << TimeUseName(use);
  }
  EXPECT_GE(h.channel_time.spent()[TimeUse::kPush], 12);
}

/// Inner steps take a second each, evaluations five; an exchange that has begun ends every `link` steps.
TimeSpent TrainBehindALink(uint64_t link, uint64_t steps) {
  StreamingHarness h;
  h.Start();
  h.runner->hold = true;
  h.fake->on_step = [&](uint64_t step) {
    h.clock.Advance(Seconds(1));
    if (step % link == 0) h.runner->RunHeld();
    if (step == steps) h.worker_status.RequestStop();
    return absl::OkStatus();
  };
  h.coordinator.evaluate_all = true;
  h.fake->on_evaluate = [&] { h.clock.Advance(Seconds(5)); };
  const MonoTime begin = h.clock.Now();
  const auto end = h.sync->Run();
  EXPECT_TRUE(end.ok()) << end.status();
  const TimeSpent spent = h.time.spent();
  EXPECT_NEAR(spent.total(), ToSeconds(h.clock.Now() - begin), 1e-6) << "every second in one use";
  EXPECT_EQ(spent[TimeUse::kEvaluate], 5.0 * static_cast<double>(h.fake->evaluations));
  EXPECT_GT(spent[TimeUse::kEvaluate], 0);
  return spent;
}

TEST(OverlappedSync, UtilisationFallsWhenALinkTakesUpEveryThirdCycleOnly) {
  const auto of_steps = [](const TimeSpent& spent) {
    return spent[TimeUse::kCompute] / (spent[TimeUse::kCompute] + spent[TimeUse::kOverdue]);
  };
  const TimeSpent fast = TrainBehindALink(1, 240);
  EXPECT_EQ(fast[TimeUse::kOverdue], 0);
  EXPECT_EQ(fast[TimeUse::kCompute], 240);
  // H is 4: of twelve steps between two pushes of a fragment, four are due.
  const TimeSpent slow = TrainBehindALink(12, 240);
  EXPECT_NEAR(of_steps(slow), 1.0 / 3, 0.05);
  EXPECT_LT(UtilisationOf(slow), 0.5);
  EXPECT_EQ(slow[TimeUse::kCompute] + slow[TimeUse::kOverdue], 240);
}

TEST(OverlappedSync, AStepThatIsNotFiniteGoesBackToTheBases) {
  StreamingHarness h;
  std::vector<float> local;
  h.fake->on_step = [&](uint64_t step) -> absl::Status {
    if (step == 5) local.push_back(h.fake->first());
    if (step == 9) h.worker_status.RequestStop();
    return step == 4 ? absl::FailedPreconditionError("loss is nan") : absl::OkStatus();
  };
  ASSERT_TRUE(h.Start().Run().ok());
  EXPECT_EQ(h.observer.not_finite, 1);
  ASSERT_EQ(local.size(), 1u);
  EXPECT_FLOAT_EQ(local[0], Descend(1.0F, 5.0F, 1)) << "version 1 as published";
}

TEST(OverlappedSync, StepAfterStepThatIsNotFiniteEndsTheWorker) {
  StreamingHarness h;
  h.fake->on_step = [](uint64_t) { return absl::FailedPreconditionError("loss is nan"); };
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, SyncEnd::kDiverged);
  EXPECT_THAT(h.log.str(), HasSubstr("giving up"));
}

TEST(OverlappedSync, ARestoreEndsTheLoopWithEveryExchange) {
  StreamingHarness h;
  At(h, {{4, [&] { h.coordinator.Restore(); }}}, 100);
  const auto end = h.Start().Run();
  EXPECT_EQ(RejectionReasonOf(end.status()), RejectionReason::kWrongEpoch) << end.status();
  EXPECT_FALSE(h.coordinator.cancelled()) << "the worker will pull again";
  EXPECT_LE(h.fake->steps, 7u);
}

TEST(OverlappedSync, ADataDirectoryThatWasPutBackEndsTheLoopLoudly) {
  StreamingHarness h;
  At(h, {{10, [&] { h.coordinator.GoBack(); }}}, 100);
  const auto end = h.Start().Run();
  EXPECT_EQ(RejectionReasonOf(end.status()), RejectionReason::kWrongEpoch) << end.status();
  EXPECT_THAT(h.log.str(), HasSubstr("the coordinator went back from version"));
}

TEST(OverlappedSync, AForgottenWorkerJoinsAgainBesideItsTraining) {
  StreamingHarness h;
  At(h,
     {{2,
       [&] {
         h.worker_status.HeartbeatRejected(
             *h.worker_status.member(),
             WithRejection(absl::FailedPreconditionError("who?"), RejectionReason::kNotAMember));
       }}},
     12);
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(h.session.member().incarnation, Incarnation(2));
  EXPECT_THAT(BasesOf(h, 0), ElementsAre(0, 1, 2));
}

TEST(OverlappedSync, DrainedItPushesEveryFragmentOnceMore) {
  StreamingHarness h;
  At(h, {{2, [&] { Command(h, {.command = WorkerCommand::kDrain}); }}}, 100);
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, SyncEnd::kDrained);
  EXPECT_EQ(h.fake->steps, 5u) << "fragment 1 is due after step 3, fragment 0 after step 5";
  EXPECT_THAT(BasesOf(h, 0), ElementsAre(0, 1));
  EXPECT_THAT(BasesOf(h, 1), ElementsAre(0));
  EXPECT_TRUE(h.coordinator.cancelled()) << "nothing more is waited for";
}

TEST(OverlappedSync, DrainedAtOnceItPushesWhatIsDone) {
  StreamingHarness h;
  At(h, {{2, [&] { Command(h, {.command = WorkerCommand::kRestart, .at_once = true}); }}}, 100);
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, SyncEnd::kRestart);
  EXPECT_EQ(h.fake->steps, 2u);
  EXPECT_EQ(h.coordinator.headers().back().key.fragment, FragmentId(1));
  EXPECT_EQ(h.coordinator.headers().back().steps, 2u);
}

TEST(OverlappedSync, DataThatIsOverDrains) {
  StreamingHarness h;
  h.fake->on_step = [](uint64_t step) { return step < 3 ? absl::OkStatus() : NoMoreSteps(); };
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, SyncEnd::kDrained);
  EXPECT_EQ(h.fake->steps, 3u);
  EXPECT_EQ(h.observer.not_finite, 0);
  EXPECT_EQ(h.coordinator.headers().back().steps, 2u);
}

TEST(OverlappedSync, DrainedWhileAPushIsOnItsWayItAwaitsTheVerdict) {
  StreamingHarness h;
  At(h,
     {{1,
       [&] {
         h.runner->hold = true;
         Command(h, {.command = WorkerCommand::kDrain, .at_once = true});
       }}},
     100);
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, SyncEnd::kDrained);
  EXPECT_EQ(h.coordinator.counted().size(), 2u);
}

TEST(OverlappedSync, CommandedToResyncItTakesTheHeads) {
  StreamingHarness h;
  std::vector<float> local;
  At(h,
     {{3,
       [&] {
         h.coordinator.PublishWithout(FragmentId(0), 7.0F);
         Command(h, {.command = WorkerCommand::kResync});
         h.coordinator.heartbeat_reply = {};
       }},
      {4, [&] { local.push_back(h.fake->first()); }}},
     6);
  ASSERT_TRUE(h.Start().Run().ok());
  ASSERT_EQ(local.size(), 1u);
  EXPECT_FLOAT_EQ(local[0], Descend(1.0F, 5.0F, 1) + 7.0F);
  EXPECT_THAT(BasesOf(h, 0), ElementsAre(0, 2));
}

TEST(OverlappedSync, AConfigurationThatIsSetBeforeTheFirstPullComesFirst) {
  StreamingHarness h;
  OverlappedSync& sync = h.Start();
  h.coordinator.config_version = 2;
  const auto end = sync.Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, SyncEnd::kReconfigured);
  EXPECT_TRUE(h.coordinator.headers().empty());
}

TEST(OverlappedSync, ANewConfigurationIsBegunWithNothingLeftBehind) {
  StreamingHarness h;
  At(h, {{4, [&] { h.coordinator.config_version = 2; }}}, 100);
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, SyncEnd::kReconfigured);
  EXPECT_FALSE(h.coordinator.cancelled());
  // Fragment 0's answer after step 5 named it; fragment 1, whose round has the old one, was pushed early.
  EXPECT_EQ(h.coordinator.headers().back().key.fragment, FragmentId(1));
  EXPECT_EQ(h.coordinator.headers().back().steps, 3u);
}

TEST(OverlappedSync, RejectedForItsCodecItEndsToTakeTheConfiguration) {
  StreamingHarness h;
  h.coordinator.before_push = [](const PushHeader&) {
    return WithRejection(absl::InvalidArgumentError("codec"), RejectionReason::kWrongCodec);
  };
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, SyncEnd::kReconfigured);
}

TEST(OverlappedSync, TheRunEndsWhenEveryFragmentHasItsTokens) {
  RunOptions run = StreamingRun();
  run.rounds = 3;  // 12 steps of 24 tokens
  StreamingHarness h(run);
  h.coordinator.evaluate_all = true;
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, SyncEnd::kFinished);
  EXPECT_EQ(h.coordinator.tokens(0), run.total_tokens());
  EXPECT_EQ(h.coordinator.tokens(1), run.total_tokens());
  EXPECT_LE(h.fake->steps, 14u) << "the answers to the last pushes are a step late";
  ASSERT_TRUE(h.heartbeater.Beat().ok());
  const auto evaluations = h.coordinator.evaluations();
  ASSERT_FALSE(evaluations.empty());
  EXPECT_EQ(evaluations.front().version, Version(0));
  EXPECT_EQ(evaluations.back().version, h.coordinator.head(0));
  EXPECT_FLOAT_EQ(static_cast<float>(evaluations.back().loss), h.coordinator.first_parameter(0));
}

TEST(OverlappedSync, EvaluationLeavesTheLocalParametersAsTheyWere) {
  StreamingHarness plain;
  At(plain, {}, 11);
  ASSERT_TRUE(plain.Start().Run().ok());
  StreamingHarness evaluating;
  evaluating.coordinator.evaluate_all = true;
  At(evaluating, {}, 11);
  ASSERT_TRUE(evaluating.Start().Run().ok());
  EXPECT_GT(evaluating.fake->evaluations, 1u);
  EXPECT_EQ(evaluating.fake->first(), plain.fake->first());
  EXPECT_EQ(evaluating.coordinator.payloads(), plain.coordinator.payloads());
}

TEST(OverlappedSync, LearningRatesFollowTheTokensOfFragmentZero) {
  RunOptions run = StreamingRun();
  run.rounds = 5;
  run.inner.warmup_steps = 6;
  run.inner.min_learning_rate_ratio = 0.1;
  StreamingHarness h(run);
  ASSERT_TRUE(h.Start().Run().ok());
  ASSERT_GE(h.fake->learning_rates.size(), 20u);
  // One worker, no failure: step t has the rate of position t, whatever is in flight.
  for (int step = 0; step < 20; ++step) {
    EXPECT_DOUBLE_EQ(h.fake->learning_rates[static_cast<size_t>(step)], LearningRateAt(run, step)) << step;
  }
}

class OverlappedLivesTest : public ::testing::Test {
 protected:
  OverlappedLivesTest()
      : folder_(JoinPath(
            ::testing::TempDir(),
            std::string("overlapped_") + ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    EXPECT_TRUE(RemoveAll(folder_).ok());
  }
  std::unique_ptr<WorkerCheckpoint> Disk(const StreamingHarness& h) {
    return WorkerCheckpoint::Open(folder_,
                                  {.run_id = "run-1",
                                   .worker = WorkerName("w1"),
                                   .manifest_hash = ManifestHash(h.replica->manifest())},
                                  Logger())
        .value();
  }
  const std::string folder_;
};

TEST_F(OverlappedLivesTest, EachFragmentsLastPushIsSettledAfterAKill) {
  StreamingHarness h;
  h.coordinator.before_push = [&](const PushHeader& header) {
    return header.key == PushKey{FragmentId(0), Version(2), 0} ? Killed() : absl::OkStatus();
  };
  {
    const auto checkpoint = Disk(h);
    EXPECT_EQ(h.Start(checkpoint.get()).Run().status(), Killed());
  }
  const std::vector<std::byte> bytes = h.coordinator.payloads().back();
  h.coordinator.before_push = nullptr;
  At(h, {}, h.fake->steps + 8);
  const auto checkpoint = Disk(h);
  const size_t before = h.coordinator.headers().size();
  const auto end = h.Start(checkpoint.get()).Run();
  EXPECT_TRUE(end.ok() || absl::IsCancelled(end.status())) << end.status();
  ASSERT_GT(h.coordinator.headers().size(), before);
  EXPECT_EQ(h.coordinator.payloads()[before], bytes) << "the same bytes";
  std::set<std::pair<uint32_t, uint64_t>> once;
  for (const auto& [worker, key] : h.coordinator.counted()) {
    EXPECT_TRUE(once.insert({key.fragment.value(), key.base.value()}).second) << "counted twice";
  }
}

TEST_F(OverlappedLivesTest, ARoundIsSavedOnlyWhenItsPushIsKept) {
  StreamingHarness h;
  const auto checkpoint = Disk(h);
  const auto kept = [&] {
    checkpoint->Flush();
    return ListDir(folder_).value();
  };
  std::vector<std::string> before, after;
  At(h,
     {{1, [&] { h.runner->hold = true; }},
      {2,
       [&] {
         before = kept();
         h.runner->RunHeld();
         after = kept();
         h.runner->hold = false;
       }}},
     4);
  ASSERT_TRUE(h.Start(checkpoint.get()).Run().ok());
  EXPECT_THAT(before, IsEmpty()) << "killed now, the next life trains on the samples of this push again";
  EXPECT_THAT(after, ElementsAre("push-0", "round-000001"));
}

/// A life ends with an accepted push; the next one trains from `expected` on when the answer comes.
void NextLifeOnlyWantsTheAnswer(AnswerUse answer, float expected) {
  RunOptions run = StreamingRun();
  run.sync.answer = answer;
  StreamingHarness h(run);
  h.coordinator.workers = 2;  // the other one does not come
  h.coordinator.before_pull = [&](const PullRequest& request) {
    if (!request.call.after.has_value()) return;
    h.worker_status.RequestStop();
    h.coordinator.CancelPulls();
  };
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
  ASSERT_THAT(BasesOf(h, 0), ElementsAre(0));
  // A process of its own, which has not been told to stop. The round of that push closes without the other.
  StreamingHarness next(&h.coordinator);
  h.coordinator.before_pull = [&](const PullRequest& request) {
    if (request.call.after == Version(0)) h.coordinator.PublishWithout(request.call.fragment, 1.0F);
    if (request.call.after != Version(1)) return;
    next.worker_status.RequestStop();
    h.coordinator.CancelPulls();
  };
  EXPECT_TRUE(next.Start().Run().ok());
  EXPECT_EQ(next.fake->first(), Descend(expected, 5.0F, 1)) << "used at once";
  EXPECT_THAT(BasesOf(h, 0), ElementsAre(0, 1)) << "not pushed again on version 0";
}

TEST_F(OverlappedLivesTest, WhatAnEarlierLifeHadAcceptedOnlyWantsItsAnswer) {
  NextLifeOnlyWantsTheAnswer(AnswerUse::kBlend, 0.5F * 1.0F + 0.5F * 2.0F);
}

TEST_F(OverlappedLivesTest, AnAnswerToAnEarlierLifeIsTakenWholeUnderTheStepsOfThisOne) {
  NextLifeOnlyWantsTheAnswer(AnswerUse::kRebase, 2.0F);
}

}  // namespace
}  // namespace atl

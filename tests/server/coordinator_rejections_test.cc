#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>

#include "server/rejection.h"
#include "tests/server/test_run.h"

// What the coordinator does not let in, and how it says so.

namespace atl {
namespace {

std::vector<float> Delta() {
  return Fill([](size_t i) { return 0.001F * static_cast<float>(i % 7); });
}

/// Of a contribution to version 0.
constexpr PushKey kFirst{.fragment = FragmentId(0), .base = Version(0), .sequence = 0};

class CoordinatorRejections : public testing::Test {
 protected:
  void SetUp() override {
    workers_ = run_.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
    for (const MemberRef& worker : workers_) ASSERT_TRUE(run_.Pull(worker).ok());
  }
  RejectionReason Reason(const MemberRef& caller, uint64_t base, const std::vector<float>& values,
                         const PushVariation& variation = {}) {
    return ReasonOf(run_.Push(caller, base, values, variation).status());
  }
  void NothingArrived() { EXPECT_TRUE(run_.coordinator().GetStatus(0).fragments[0].arrived.empty()); }

  TestRun run_;
  std::vector<MemberRef> workers_;
};

TEST_F(CoordinatorRejections, OfAnotherRunOrEpochOrLife) {
  MemberRef caller = workers_[0];
  caller.run_id = "0000000000000000";
  EXPECT_EQ(Reason(caller, 0, Delta()), RejectionReason::kWrongRun);
  caller = workers_[0];
  caller.epoch = Epoch(caller.epoch.value() + 1);
  EXPECT_EQ(Reason(caller, 0, Delta()), RejectionReason::kWrongEpoch);
  caller = workers_[0];
  caller.worker = "stranger";
  EXPECT_EQ(Reason(caller, 0, Delta()), RejectionReason::kNotAMember);
  run_.Join("a");
  EXPECT_EQ(Reason(workers_[0], 0, Delta()), RejectionReason::kSuperseded);
  NothingArrived();
}

TEST_F(CoordinatorRejections, OfAnotherBase) {
  EXPECT_EQ(Reason(workers_[0], 1, Delta()), RejectionReason::kUnknownBase);
  for (const MemberRef& worker : workers_) ASSERT_TRUE(run_.Push(worker, 0, Delta()).ok());
  ASSERT_TRUE(run_.Pull(workers_[0], 0).ok());
  const MemberRef late = run_.Join("c");
  EXPECT_EQ(Reason(late, 0, Delta()), RejectionReason::kStaleBase);
}

TEST_F(CoordinatorRejections, OfAnotherForm) {
  EXPECT_EQ(Reason(workers_[0], 0, Delta(), {.codec = CodecKind::kBf16}), RejectionReason::kWrongCodec);
  EXPECT_EQ(Reason(workers_[0], 0, Delta(), {.fragment = FragmentId(1)}), RejectionReason::kWrongFragment);
  EXPECT_EQ(Reason(workers_[0], 0, std::vector<float>(7)), RejectionReason::kWrongSize);
  EXPECT_EQ(run_.Push(workers_[0], 0, Delta(), {.sequence = 3}).status().code(),
            absl::StatusCode::kInvalidArgument);
  NothingArrived();
}

TEST_F(CoordinatorRejections, ABrokenPayloadIsSentAgain) {
  EXPECT_EQ(Reason(workers_[0], 0, Delta(), {.crc = 12345}), RejectionReason::kBadChunk);
  NothingArrived();
  const auto status = run_.coordinator().GetPushStatus(workers_[0], kFirst);
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->stage, PushStage::kUnknown);
  EXPECT_TRUE(run_.Push(workers_[0], 0, Delta()).ok());
}

TEST_F(CoordinatorRejections, AQuestionAfterAPushStartsNoUpload) {
  run_.faults().started_uploads = 0;
  for (int i = 0; i < 3; ++i) {
    const auto status = run_.coordinator().GetPushStatus(workers_[0], kFirst);
    ASSERT_TRUE(status.ok());
    EXPECT_EQ(status->stage, PushStage::kUnknown);
  }
  EXPECT_EQ(run_.faults().started_uploads, 0);
  EXPECT_TRUE(run_.Push(workers_[0], 0, Delta()).ok());
}

TEST_F(CoordinatorRejections, ValuesBetweenTheTensors) {
  for (const size_t gap : {size_t{300}, size_t{511}, size_t{1012}, size_t{1023}}) {
    std::vector<float> values = Delta();
    values[gap] = 1e-6F;
    const auto pushed = run_.Push(workers_[0], 0, values);
    EXPECT_EQ(ReasonOf(pushed.status()), RejectionReason::kWrongSize) << gap;
    EXPECT_NE(pushed.status().message().find("value " + std::to_string(gap)), std::string::npos)
        << pushed.status();
  }
  NothingArrived();
  EXPECT_TRUE(run_.Push(workers_[0], 0, Delta()).ok());
}

TEST(CoordinatorPrivacy, NoiseBetweenTheTensorsIsAccepted) {
  CoordinatorOptions options = SmallRun();
  options.run.privacy = {.clip_norm = 2, .noise_multiplier = 0.5, .delta = 1e-5};
  TestRun run(options);
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  std::vector<float> values = Delta();
  values[300] = 1;
  EXPECT_TRUE(run.Push(workers[0], 0, values).ok()) << "workers of 0.1.0 add noise there";
}

TEST_F(CoordinatorRejections, APushWithoutStepsOrTokens) {
  for (const PushVariation& claims : {PushVariation{.tokens = 0}, PushVariation{.steps = 0}}) {
    const absl::Status pushed = run_.Push(workers_[0], 0, Delta(), claims).status();
    EXPECT_TRUE(absl::IsInvalidArgument(pushed)) << pushed;
    EXPECT_NE(pushed.message().find(claims.steps == 0 ? "PushHeader.steps" : "PushHeader.tokens"),
              std::string::npos)
        << pushed;
  }
  NothingArrived();
  EXPECT_EQ(run_.coordinator().GetPushStatus(workers_[0], kFirst)->stage, PushStage::kUnknown);
  const PushVariation absurd{.tokens = uint64_t{1} << 63, .steps = 0xffffffff};
  ASSERT_TRUE(run_.Push(workers_[0], 0, Delta(), absurd).ok()) << "it counts with what was assigned";
  ASSERT_TRUE(run_.Push(workers_[1], 0, Delta(), {.tokens = 1, .steps = 1}).ok());
  ASSERT_TRUE(run_.Pull(workers_[0], 0).ok());
  EXPECT_EQ(run_.coordinator().GetStatus(1).rounds.back().tokens, 2 * kStepTokens + 1);
}

TEST_F(CoordinatorRejections, WhatIsNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e37F}) {
    std::vector<float> values = Delta();
    values[600] = bad;
    const auto pushed = run_.Push(workers_[0], 0, values);
    EXPECT_EQ(ReasonOf(pushed.status()), RejectionReason::kNotFinite) << bad;
    EXPECT_NE(pushed.status().message().find("'a'"), std::string::npos);
  }
  NothingArrived();
  EXPECT_TRUE(run_.Push(workers_[0], 0, Delta()).ok()) << "a better one may follow";
  EXPECT_EQ(run_.coordinator().ListWorkers(false)[0].contributions_refused, 3);
}

TEST_F(CoordinatorRejections, AnAbsurdLoss) {
  for (const double loss : {-1e300, -0.5, 1e5, 1e300}) {
    const auto pushed = run_.Push(workers_[0], 0, Delta(), {.loss = loss});
    EXPECT_EQ(ReasonOf(pushed.status()), RejectionReason::kNotFinite) << loss;
    EXPECT_NE(pushed.status().message().find("PushHeader.mean_loss is from 0 to 10000"), std::string::npos)
        << pushed.status();
  }
  NothingArrived();
  for (const MemberRef& worker : workers_) ASSERT_TRUE(run_.Push(worker, 0, Delta(), {.loss = 2.5}).ok());
  ASSERT_TRUE(run_.Pull(workers_[0], 0).ok());
  EXPECT_DOUBLE_EQ(run_.coordinator().GetStatus(1).rounds.front().train_loss, 2.5);
}

TEST_F(CoordinatorRejections, AWorkerAboveTheHeadGetsTheHeadAndAnEventSaysSo) {
  EventCatcher events(&run_.coordinator());
  const auto head = run_.Pull(workers_[0], 29);
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(head->outcome, PullOutcome::kParameters);
  const auto event = events.WaitFor(EventKind::kReplicaDiverged);
  ASSERT_TRUE(event.has_value());
  EXPECT_NE(event->message.find("has version 29 of fragment 0, whose head is 0"), std::string::npos)
      << event->message;
}

TEST_F(CoordinatorRejections, ASecondContributionToOneBase) {
  ASSERT_TRUE(run_.Push(workers_[0], 0, Delta()).ok());
  const auto again = run_.Push(workers_[0], 0, Delta());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->duplicate);
  EXPECT_EQ(Reason(workers_[0], 0, Fill([](size_t) { return 0.5F; })), RejectionReason::kAlreadyPushed);
  ASSERT_TRUE(run_.Push(workers_[1], 0, Delta()).ok());
  ASSERT_TRUE(run_.Pull(workers_[0], 0).ok());
  // The answer was lost and the round has moved on: it is known all the same.
  const auto committed = run_.Push(workers_[0], 0, Delta());
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_TRUE(committed->duplicate);
  EXPECT_EQ(committed->head, Version(1));
  const auto status = run_.coordinator().GetPushStatus(workers_[0], kFirst);
  EXPECT_EQ(status->stage, PushStage::kCommitted);
  EXPECT_EQ(run_.coordinator().GetStatus(1).committed_tokens, 128);
}

TEST_F(CoordinatorRejections, ClaimsAreCappedByTheAssignment) {
  ASSERT_TRUE(run_.Push(workers_[0], 0, Delta(), {.tokens = 1'000'000, .steps = 900}).ok());
  ASSERT_TRUE(run_.Push(workers_[1], 0, Delta(), {.loss = std::numeric_limits<double>::quiet_NaN()}).ok());
  ASSERT_TRUE(run_.Pull(workers_[0], 0).ok());
  const StatusView status = run_.coordinator().GetStatus(1);
  EXPECT_EQ(status.committed_tokens, 128);
  EXPECT_EQ(status.data_parallel_bytes, 2 * 2 * 8 * 800);
  EXPECT_EQ(status.rounds[0].train_loss, 2.5) << "the mean of what is known";
}

TEST_F(CoordinatorRejections, TwoWorkersWithOneName) {
  const auto thief = run_.TryJoin("a", "another secret");
  EXPECT_EQ(ReasonOf(thief.status()), RejectionReason::kNameTaken);
  run_.clock().Advance(Seconds(16));
  EXPECT_TRUE(run_.TryJoin("a", "another secret").ok()) << "its owner was silent for a lease";
  EXPECT_EQ(ReasonOf(run_.Heartbeat(workers_[0]).status()), RejectionReason::kSuperseded);
}

TEST_F(CoordinatorRejections, AJoinThatDoesNotFitTheRun) {
  JoinCall call;
  call.worker = "c";
  call.secret = "0123456789abcdef";
  call.manifest_hash = "another model";
  EXPECT_EQ(ReasonOf(run_.coordinator().Join(call).status()), RejectionReason::kManifestMismatch);
  call.manifest_hash = ManifestHash(SmallManifest());
  call.dataset =
      DatasetSummary{.tokenizer = "gpt2", .vocabulary = 256, .train_tokens = 1, .fingerprint = "f"};
  EXPECT_EQ(ReasonOf(run_.coordinator().Join(call).status()), RejectionReason::kDatasetMismatch);
  call.dataset->tokenizer = "bytes";
  EXPECT_TRUE(run_.coordinator().Join(call).ok());
  call.dataset->tokenizer = "";
  EXPECT_TRUE(run_.coordinator().Join(call).ok()) << "the worker's data are no token files";
  call.worker = "d";
  call.dataset->fingerprint = "g";
  EXPECT_TRUE(run_.coordinator().Join(call).ok()) << "nothing was contributed yet";
  call.expected_run = "another";
  EXPECT_EQ(ReasonOf(run_.coordinator().Join(call).status()), RejectionReason::kWrongRun);
  call.secret = "short";
  EXPECT_TRUE(absl::IsInvalidArgument(run_.coordinator().Join(call).status()));
  call.worker = "Not A Name";
  EXPECT_TRUE(absl::IsInvalidArgument(run_.coordinator().Join(call).status()));
}

TEST_F(CoordinatorRejections, ABrokenUploadGoesOnWhereItStopped) {
  const std::vector<float> delta = Delta();
  const std::span<const std::byte> payload = AsBytes(delta);
  const PushHeader header = run_.MakePush(0, payload);
  {
    auto session = run_.coordinator().StartPush(workers_[0], header);
    ASSERT_TRUE(session.ok());
    ASSERT_TRUE((*session)->Append(0, payload.first(1000)).ok());
    EXPECT_TRUE(absl::IsAborted(run_.coordinator().StartPush(workers_[0], header).status()))
        << "the first one still lives";
  }
  const auto status = run_.coordinator().GetPushStatus(workers_[0], kFirst);
  EXPECT_EQ(status->stage, PushStage::kPartial);
  EXPECT_EQ(status->received_bytes, 1000);
  auto session = run_.coordinator().StartPush(workers_[0], header);
  ASSERT_TRUE(session.ok());
  EXPECT_EQ((*session)->received_bytes(), 1000);
  EXPECT_EQ(ReasonOf((*session)->Append(2000, payload.subspan(2000))), RejectionReason::kBadChunk);
  EXPECT_EQ(ReasonOf((*session)->Finish().status()), RejectionReason::kBadChunk) << "it is not complete";
  ASSERT_TRUE((*session)->Append(1000, payload.subspan(1000)).ok());
  EXPECT_TRUE((*session)->Finish().ok());
}

TEST_F(CoordinatorRejections, AClientThatForgotBeginsAnew) {
  const std::vector<float> delta = Delta();
  const std::span<const std::byte> payload = AsBytes(delta);
  const std::vector<float> other(250, 9.0F);
  {
    auto session = run_.coordinator().StartPush(workers_[0], run_.MakePush(0, payload));
    ASSERT_TRUE((*session)->Append(0, AsBytes(other)).ok());
  }
  EXPECT_TRUE(run_.Push(workers_[0], 0, delta).ok());
}

TEST(CoordinatorBudget, UploadsInFlightAreBounded) {
  CoordinatorOptions options = SmallRun();
  options.run.contribution_budget_bytes = kSmallElements * 4 + 100;
  TestRun run(options);
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  const std::vector<float> delta = Delta();
  const std::span<const std::byte> payload = AsBytes(delta);
  {
    auto first = run.coordinator().StartPush(workers[0], run.MakePush(0, payload));
    ASSERT_TRUE(first.ok());
    const auto second = run.coordinator().StartPush(workers[1], run.MakePush(0, payload));
    EXPECT_EQ(ReasonOf(second.status()), RejectionReason::kOverBudget);
    EXPECT_TRUE(RejectionOf(second.status())->retry_after.has_value());
  }
  EXPECT_TRUE(run.Push(workers[1], 0, delta).ok());
}

TEST(CoordinatorBudget, OneContributionToTheOpenRoundAlwaysFits) {
  // As set live together with a codec that needs less, while the open round still takes the one before.
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  run.options().run.contribution_budget_bytes = 16;
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_TRUE(run.Push(workers[0], 0, Delta()).ok());
}

TEST(CoordinatorShutdown, EverythingIsAnswered) {
  TestRun run;
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  absl::Status answer;
  PullCall call;
  call.after = Version(0);
  call.wait = Seconds(60);
  run.coordinator().Pull(workers[0], call,
                         [&](const absl::StatusOr<PullResult>& result) { answer = result.status(); });
  run.coordinator().Shutdown();
  run.coordinator().Shutdown();
  EXPECT_EQ(ReasonOf(answer), RejectionReason::kShuttingDown);
  EXPECT_EQ(ReasonOf(run.Heartbeat(workers[0]).status()), RejectionReason::kShuttingDown);
  EXPECT_EQ(ReasonOf(run.Push(workers[0], 0, Delta()).status()), RejectionReason::kShuttingDown);
  EXPECT_EQ(ReasonOf(run.Pull(workers[0]).status()), RejectionReason::kShuttingDown);
}

TEST_F(CoordinatorRejections, OneWorkersRejectedPushesDoNotFillTheEventLog) {
  EventCatcher events(&run_.coordinator());
  MemberRef stranger = workers_[0];
  stranger.worker = "stranger";
  stranger.epoch = Epoch(99);
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(Reason(workers_[0], 0, Delta(), {.codec = CodecKind::kBf16}), RejectionReason::kWrongCodec);
    stranger.worker = "stranger-" + std::to_string(i);
    EXPECT_EQ(Reason(stranger, 0, Delta()), RejectionReason::kWrongEpoch);
  }
  EXPECT_EQ(Reason(workers_[1], 0, Delta(), {.codec = CodecKind::kBf16}), RejectionReason::kWrongCodec);
  ASSERT_TRUE(run_.coordinator().Leave(workers_[1], "enough").ok());
  ASSERT_TRUE(events.WaitFor(EventKind::kWorkerLeft).has_value());
  std::map<WorkerName, int> told;
  for (const EventView& event : events.events()) {
    if (event.kind == EventKind::kContributionRefused) ++told[event.worker.substr(0, 8)];
  }
  EXPECT_GE(told["a"], 1);
  EXPECT_LE(told["a"], 20);
  EXPECT_LE(told["stranger"], 20);
  EXPECT_EQ(told["b"], 1) << "others are still heard of";
  EXPECT_EQ(run_.coordinator().ListWorkers(false)[0].contributions_refused, 200) << "all are counted";
  // Half an hour later there is room for news again.
  run_.clock().Advance(Seconds(1800));
  const MemberRef back = run_.Join("a");
  EXPECT_EQ(Reason(back, 0, Delta(), {.codec = CodecKind::kBf16}), RejectionReason::kWrongCodec);
  EXPECT_TRUE(events.WaitFor(EventKind::kContributionRefused, told["a"] + told["stranger"] + 1).has_value());
}

}  // namespace
}  // namespace atl

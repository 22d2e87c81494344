#include "client/sync/delivery.h"

#include "common/crc32c.h"
#include "gtest/gtest.h"
#include "tests/client/sync/harness.h"

namespace atl {
namespace {

absl::Status Rejection(absl::StatusCode code, RejectionReason reason) {
  return WithRejection(absl::Status(code, "refused"), reason);
}

/// A joined worker and one contribution of zeros on version 0.
class DeliveryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    h_.coordinator.SeedWith(1.0F);
    h_.coordinator.hold_rounds = true;
    h_.Start();
    const uint64_t elements = h_.session.info().fragments.at(0).elements;
    payload_.resize(elements * sizeof(float));
    header_ = {.key = {FragmentId(0), Version(0), 0},
               .codec = CodecKind::kFp32,
               .payload_bytes = payload_.size(),
               .payload_crc32c = Crc32c(payload_)};
  }

  absl::StatusOr<DeliveryReport> Deliver() {
    Delivery delivery(&h_.session, &h_.retry_policy, h_.context);
    return delivery.Deliver(header_, payload_);
  }
  FakeCoordinator& coordinator() { return h_.coordinator; }

  Harness h_;
  std::vector<std::byte> payload_;
  PushHeader header_;
};

TEST_F(DeliveryTest, ArrivesAtOnce) {
  const auto report = Deliver();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->verdict, Verdict::kCounted);
  EXPECT_FALSE(report->duplicate);
  EXPECT_EQ(coordinator().Calls("Push"), 1u);
  EXPECT_EQ(coordinator().Calls("GetPushStatus"), 0u);
}

TEST_F(DeliveryTest, ALostAnswerIsLookedUpNotSentAgain) {
  coordinator().Fail("Push", {.status = absl::UnavailableError("broken pipe"), .applied = true});
  const auto report = Deliver();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->verdict, Verdict::kCounted);
  EXPECT_TRUE(report->duplicate);
  EXPECT_EQ(coordinator().Calls("Push"), 1u);
}

TEST_F(DeliveryTest, ALostAnswerOfARoundThatClosedMeanwhileCountsToo) {
  coordinator().hold_rounds = false;
  coordinator().Fail("Push", {.status = absl::UnavailableError("broken pipe"), .applied = true});
  const auto report = Deliver();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->verdict, Verdict::kCounted);
  EXPECT_EQ(coordinator().head(), Version(1));
}

TEST_F(DeliveryTest, ABrokenUploadSendsTheRestOnly) {
  coordinator().Fail("Push", {.status = absl::UnavailableError("reset"), .received_bytes = 512});
  ASSERT_TRUE(Deliver().ok());
  EXPECT_EQ(coordinator().starts, (std::vector<uint64_t>{0, 512}));
  EXPECT_EQ(coordinator().payloads[0], coordinator().payloads[1]);
}

TEST_F(DeliveryTest, WhatNeverArrivedIsSentFromTheBeginning) {
  for (int i = 0; i < 5; ++i) coordinator().Fail("Push", {.status = absl::UnavailableError("away")});
  ASSERT_TRUE(Deliver().ok());
  EXPECT_EQ(coordinator().starts, std::vector<uint64_t>(6, 0));
  EXPECT_EQ(h_.observer.pauses.size(), 5u);
}

TEST_F(DeliveryTest, ADamagedChunkIsSentAgain) {
  coordinator().Fail("Push", {.status = Rejection(absl::StatusCode::kDataLoss, RejectionReason::kBadChunk),
                              .received_bytes = 1024});
  ASSERT_TRUE(Deliver().ok());
  EXPECT_EQ(coordinator().starts, (std::vector<uint64_t>{0, 1024}));
}

TEST_F(DeliveryTest, ACoordinatorWithoutRoomIsOneLongWait) {
  for (int i = 0; i < 20; ++i) {
    coordinator().Fail(
        "Push", {.status = Rejection(absl::StatusCode::kResourceExhausted, RejectionReason::kOverBudget)});
  }
  ASSERT_TRUE(Deliver().ok());
  // Its status can be asked for each time, but that does not make it a new wait.
  EXPECT_GT(h_.observer.pauses.back(), Seconds(0.3));
  const std::string log = h_.log.str();
  size_t over = 0;
  for (size_t at = log.find("answers again"); at != std::string::npos; at = log.find("answers again", at + 1))
    ++over;
  EXPECT_EQ(over, 1u);
}

TEST_F(DeliveryTest, WhatIsRejectedForItsLossIsSentAgainWithoutIt) {
  const absl::Status rejected = Rejection(absl::StatusCode::kInvalidArgument, RejectionReason::kNotFinite);
  for (const double loss : {-0.5, 3e5}) {
    header_.mean_loss = loss;
    coordinator().Fail("Push", {.status = rejected});
    const auto report = Deliver();
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->verdict, Verdict::kCounted);
    EXPECT_EQ(coordinator().headers.back().mean_loss, 0);
    EXPECT_EQ(coordinator().payloads.back(), payload_);
    coordinator().PublishHeld();
    header_.key.base = coordinator().head();
  }
  for (int i = 0; i < 2; ++i) coordinator().Fail("Push", {.status = rejected});
  EXPECT_EQ(Deliver()->verdict, Verdict::kNotFinite) << "it was not the loss";
  EXPECT_EQ(coordinator().Calls("Push"), 6u);
}

TEST_F(DeliveryTest, ARoundThatClosedWithoutItIsLost) {
  coordinator().Fail(
      "Push", {.status = absl::UnavailableError("away"), .before = [&] { coordinator().PublishWithout(1); }});
  const auto report = Deliver();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->verdict, Verdict::kLost);
  EXPECT_EQ(coordinator().Calls("Push"), 1u);
}

TEST_F(DeliveryTest, SharedSamplesOfALostRoundAreClaimedWithoutTheirPayload) {
  header_.partition = 2;
  for (const auto& answer : {Rejection(absl::StatusCode::kFailedPrecondition, RejectionReason::kStaleBase),
                             absl::UnavailableError("away"),
                             Rejection(absl::StatusCode::kNotFound, RejectionReason::kNotAMember)}) {
    header_.key.base = coordinator().head();
    header_.samples_consumed += 12;
    coordinator().Fail("Push", {.status = absl::UnavailableError("reset"),
                                .before = [&] { coordinator().PublishWithout(1); }});
    coordinator().Fail("Push", {.status = answer});
    const size_t before = coordinator().headers.size();
    const auto report = Deliver();
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->verdict, Verdict::kLost) << answer;
    ASSERT_EQ(coordinator().headers.size(), before + 2);
    EXPECT_EQ(coordinator().headers.back(), header_);
    EXPECT_EQ(coordinator().starts.back(), payload_.size()) << "nothing behind the header";
  }
  EXPECT_EQ(h_.observer.rejoined, 0);
}

TEST_F(DeliveryTest, SharedSamplesOfAForgottenRoundAreNotClaimed) {
  header_.partition = 2;
  coordinator().Fail("Push", {.status = absl::UnavailableError("reset"), .before = [&] {
                                for (int i = 0; i < 33; ++i) coordinator().PublishWithout(0);
                              }});
  ASSERT_TRUE(Deliver().ok());
  EXPECT_EQ(coordinator().Calls("Push"), 1u);
}

TEST_F(DeliveryTest, WhatTheCoordinatorHasForgottenIsNotLost) {
  for (const uint64_t rounds : {32U, 33U}) {
    coordinator().Fail("Push", {.status = absl::UnavailableError("away"), .before = [&] {
                                  for (uint64_t i = 0; i < rounds; ++i) coordinator().PublishWithout(0);
                                }});
    header_.key.base = coordinator().head();
    const auto report = Deliver();
    ASSERT_TRUE(report.ok()) << report.status();
    const bool forgotten = rounds > 32;
    EXPECT_EQ(report->forgotten, forgotten) << rounds;
    EXPECT_EQ(report->verdict, forgotten ? Verdict::kCounted : Verdict::kLost) << rounds;
    EXPECT_EQ(h_.observer.pushed.back(), forgotten ? PushResultKind::kDropped : PushResultKind::kRejected);
  }
}

TEST_F(DeliveryTest, RejectionsOfTheContentAreVerdicts) {
  struct Row {
    absl::StatusCode code;
    RejectionReason reason;
    Verdict verdict;
  };
  for (const Row& row :
       {Row{absl::StatusCode::kFailedPrecondition, RejectionReason::kStaleBase, Verdict::kLost},
        Row{absl::StatusCode::kAlreadyExists, RejectionReason::kAlreadyPushed, Verdict::kLost},
        Row{absl::StatusCode::kInvalidArgument, RejectionReason::kNotFinite, Verdict::kNotFinite}}) {
    coordinator().Fail("Push", {.status = Rejection(row.code, row.reason)});
    const auto report = Deliver();
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->verdict, row.verdict) << RejectionReasonName(row.reason);
    EXPECT_EQ(RejectionReasonOf(report->rejection), row.reason);
  }
}

TEST_F(DeliveryTest, AHeaderThatArrivedDamagedIsSentAgain) {
  const absl::Status unknown = Rejection(absl::StatusCode::kInvalidArgument, RejectionReason::kUnknownBase);
  coordinator().Fail("Push", {.status = unknown});
  const auto report = Deliver();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->verdict, Verdict::kCounted);
  EXPECT_EQ(coordinator().starts, (std::vector<uint64_t>{0, 0}));
  EXPECT_EQ(h_.observer.pauses.size(), 1u);
}

TEST_F(DeliveryTest, AHeaderThatNeverArrivesAsItWasSentIsLost) {
  const absl::Status unknown = Rejection(absl::StatusCode::kInvalidArgument, RejectionReason::kUnknownBase);
  for (int i = 0; i < 4; ++i) coordinator().Fail("Push", {.status = unknown});
  const auto report = Deliver();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->verdict, Verdict::kLost);
  EXPECT_EQ(coordinator().Calls("Push"), 4u);
}

TEST_F(DeliveryTest, ABaseAboveTheHeadIsLost) {
  coordinator().Fail(
      "Push", {.status = Rejection(absl::StatusCode::kInvalidArgument, RejectionReason::kUnknownBase)});
  header_.key.base = Version(coordinator().head().value() + 1);
  const auto report = Deliver();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->verdict, Verdict::kLost);
  EXPECT_EQ(RejectionReasonOf(report->rejection), RejectionReason::kUnknownBase);
  EXPECT_EQ(coordinator().Calls("Push"), 1u);
}

TEST_F(DeliveryTest, AForgottenMemberJoinsAgainAndGoesOn) {
  coordinator().Fail("Push",
                     {.status = Rejection(absl::StatusCode::kNotFound, RejectionReason::kNotAMember)});
  const auto report = Deliver();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->verdict, Verdict::kCounted);
  EXPECT_EQ(h_.observer.rejoined, 1);
  EXPECT_EQ(coordinator().joins.back().expected_run, "run-1");
}

TEST_F(DeliveryTest, AnotherEpochVoidsIt) {
  coordinator().Restore();
  const auto report = Deliver();
  EXPECT_EQ(RejectionReasonOf(report.status()), RejectionReason::kWrongEpoch);
  EXPECT_EQ(coordinator().Calls("Push"), 1u);
}

TEST_F(DeliveryTest, FinalRejectionsEndIt) {
  for (const RejectionReason reason : {RejectionReason::kSuperseded, RejectionReason::kWrongRun,
                                       RejectionReason::kWrongSize, RejectionReason::kWrongSize}) {
    coordinator().Fail("Push", {.status = Rejection(absl::StatusCode::kFailedPrecondition, reason)});
    EXPECT_EQ(RejectionReasonOf(Deliver().status()), reason);
  }
}

TEST_F(DeliveryTest, AStoppingWorkerGivesUp) {
  for (int i = 0; i < 200; ++i) coordinator().Fail("Push", {.status = absl::UnavailableError("away")});
  EXPECT_EQ(Deliver().status().code(), absl::StatusCode::kCancelled);
}

TEST_F(DeliveryTest, ACommandToStopEndsTheRetries) {
  for (int i = 0; i < 50; ++i) {
    coordinator().Fail(
        "Push", {.status = Rejection(absl::StatusCode::kResourceExhausted, RejectionReason::kOverBudget),
                 .before = [&] {
                   if (coordinator().Calls("Push") == 3) h_.worker_status.RequestStop();
                 }});
  }
  EXPECT_EQ(Deliver().status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(coordinator().Calls("Push"), 3u);
}

}  // namespace
}  // namespace atl

// What a worker keeps, and how its next life goes on: processes end at every awkward moment.
#include <algorithm>
#include <memory>

#include "client/sync/rejection.h"
#include "client/sync/worker.h"
#include "common/file.h"
#include "common/signature.h"
#include "core/codec.h"
#include "core/manifest.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/sync/harness.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// A final error: the loop ends there as if the process had been killed, and nothing more is written.
absl::Status Killed() { return absl::UnauthenticatedError("killed here"); }

class ResumeStateTest : public ::testing::Test {
 protected:
  ResumeStateTest()
      : folder_(JoinPath(
            ::testing::TempDir(),
            std::string("continuity_") + ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    EXPECT_TRUE(RemoveAll(folder_).ok());
    coordinator_.SeedWith(1.0F);
    coordinator_.run.push_codec = CodecKind::kBf16;  // loses something in each encoding
  }

  /// One life of the worker's process.
  WorkerEnd Live() {
    WorkerOptions options{.join = TestJoin()};
    options.state_folder = folder_;
    options.join.expected_run = expected_run_;
    options.key = key_;
    Worker worker(options,
                  {.data = &coordinator_,
                   .control = &coordinator_,
                   .clock = &clock_,
                   .sleeper = &sleeper_,
                   .observer = &observer_,
                   .log = Logger::Create({.format = LogFormat::kJson, .stream = &log_, .file = ""}).value(),
                   .make_replica = [this](const JoinedRun&) -> absl::StatusOr<std::unique_ptr<Replica>> {
                     auto replica = std::make_unique<FakeReplica>(5.0F);
                     replica->on_step = on_step_;
                     replica_ = replica.get();
                     return replica;
                   }});
    worker_ = &worker;
    WorkerEnd end = worker.Run();
    steps_ = replica_ == nullptr ? 0 : replica_->steps;
    loaded_ = replica_ == nullptr ? 0 : replica_->loaded_steps;
    learning_rates_ = replica_ == nullptr ? std::vector<double>() : replica_->learning_rates;
    worker_ = nullptr;
    replica_ = nullptr;
    return end;
  }

  /// theta of a run that nothing disturbed.
  static std::vector<float> Undisturbed() {
    FakeCoordinator coordinator;
    coordinator.SeedWith(1.0F);
    coordinator.run.push_codec = CodecKind::kBf16;
    FakeClock clock;
    FakeSleeper sleeper(&clock);
    CountingObserver observer;
    Worker worker({.join = TestJoin()},
                  {.data = &coordinator,
                   .control = &coordinator,
                   .clock = &clock,
                   .sleeper = &sleeper,
                   .observer = &observer,
                   .log = Logger(),
                   .make_replica = [](const JoinedRun&) -> absl::StatusOr<std::unique_ptr<Replica>> {
                     return std::make_unique<FakeReplica>(5.0F);
                   }});
    EXPECT_EQ(worker.Run().code, ExitCode::kOk);
    return coordinator.parameters();
  }

  const std::string folder_;
  const SigningKey key_ = SigningKey::Generate();
  FakeClock clock_;
  FakeSleeper sleeper_{&clock_};
  CountingObserver observer_;
  std::ostringstream log_;
  FakeCoordinator coordinator_;
  std::string expected_run_;
  std::function<absl::Status(uint64_t)> on_step_;
  FakeReplica* replica_ = nullptr;
  Worker* worker_ = nullptr;
  uint64_t steps_ = 0;
  uint64_t loaded_ = 0;
  std::vector<double> learning_rates_;
};

TEST_F(ResumeStateTest, KilledInTheMiddleOfARoundItTrainsThatRoundAgain) {
  on_step_ = [](uint64_t step) { return step == 7 ? Killed() : absl::OkStatus(); };
  EXPECT_NE(Live().code, ExitCode::kOk);
  on_step_ = nullptr;
  coordinator_.samples_consumed = 12;  // what the coordinator has committed
  EXPECT_EQ(Live().code, ExitCode::kOk);
  EXPECT_EQ(loaded_, 4u) << "the optimizer stood at the end of the first round";
  EXPECT_EQ(coordinator_.parameters(), Undisturbed());
  EXPECT_EQ(coordinator_.headers.back().samples_consumed, 36u) << "no sample twice, none skipped";
}

TEST_F(ResumeStateTest, KilledBeforeThePushArrivedItSendsTheSameBytes) {
  coordinator_.Fail("Push", {});
  coordinator_.Fail("Push", {.status = Killed()});
  EXPECT_NE(Live().code, ExitCode::kOk);
  coordinator_.samples_consumed = 12;
  EXPECT_EQ(Live().code, ExitCode::kOk);
  EXPECT_THAT(log_.str(), HasSubstr("asking for the answer"));
  ASSERT_EQ(coordinator_.payloads.size(), 4u);
  EXPECT_EQ(coordinator_.payloads[1], coordinator_.payloads[2]);
  EXPECT_EQ(coordinator_.parameters(), Undisturbed());
  EXPECT_EQ(coordinator_.headers.back().samples_consumed, 36u);
}

TEST_F(ResumeStateTest, KilledBeforeTheAnswerCameItDoesNotCountTwice) {
  coordinator_.Fail("Push", {});
  coordinator_.Fail("Push", {.status = Killed(), .applied = true});
  EXPECT_NE(Live().code, ExitCode::kOk);
  EXPECT_EQ(Live().code, ExitCode::kOk);
  EXPECT_EQ(coordinator_.payloads.size(), 3u) << "nothing was sent again";
  EXPECT_EQ(coordinator_.parameters(), Undisturbed());
}

TEST_F(ResumeStateTest, APartThatArrivedIsNotSentAgain) {
  coordinator_.Fail("Push", {.status = Killed(), .received_bytes = 100});
  EXPECT_NE(Live().code, ExitCode::kOk);
  EXPECT_EQ(Live().code, ExitCode::kOk);
  EXPECT_EQ(coordinator_.starts[1], 100u);
  EXPECT_EQ(coordinator_.parameters(), Undisturbed());
}

TEST_F(ResumeStateTest, ARoundThatClosedMeanwhileGivesItsContentBack) {
  coordinator_.finish_at = 2;
  coordinator_.run.push_codec = CodecKind::kFp32;
  coordinator_.Fail("Push", {.status = Killed()});
  EXPECT_NE(Live().code, ExitCode::kOk);
  coordinator_.PublishWithout(0.5F);
  EXPECT_EQ(Live().code, ExitCode::kOk);
  EXPECT_THAT(log_.str(), HasSubstr("it does not count; its content goes into the next"));
  const float lost = 1.0F - Descend(1.0F, 5.0F, 4);
  const float second = 1.5F - Descend(1.5F, 5.0F, 4);
  EXPECT_NEAR(coordinator_.first_parameter(), 1.5F - (lost + second), 1e-5);
}

TEST_F(ResumeStateTest, AVerdictIsKeptTheSameWay) {
  coordinator_.finish_at = 2;
  coordinator_.run.push_codec = CodecKind::kFp32;
  coordinator_.Fail(
      "Push", {.status = WithRejection(absl::FailedPreconditionError("stale"), RejectionReason::kStaleBase),
               .before = [&] { coordinator_.PublishWithout(0.5F); }});
  on_step_ = [](uint64_t step) { return step == 6 ? Killed() : absl::OkStatus(); };
  EXPECT_NE(Live().code, ExitCode::kOk);
  on_step_ = nullptr;
  EXPECT_EQ(Live().code, ExitCode::kOk);
  EXPECT_EQ(coordinator_.Calls("GetPushStatus"), 0u) << "it knew";
  const float lost = 1.0F - Descend(1.0F, 5.0F, 4);
  const float second = 1.5F - Descend(1.5F, 5.0F, 4);
  EXPECT_NEAR(coordinator_.first_parameter(), 1.5F - (lost + second), 1e-5);
}

TEST_F(ResumeStateTest, WhatNobodyRemembersIsNotSentAgain) {
  coordinator_.run.push_codec = CodecKind::kFp32;
  coordinator_.Fail("Push", {.status = Killed()});
  EXPECT_NE(Live().code, ExitCode::kOk);
  for (int i = 0; i < 40; ++i) coordinator_.PublishWithout(0.0F);
  coordinator_.finish_at = 41;
  EXPECT_EQ(Live().code, ExitCode::kOk);
  EXPECT_THAT(log_.str(), HasSubstr("no longer knows whether it counted"));
  EXPECT_NEAR(coordinator_.first_parameter(), Descend(1.0F, 5.0F, 4), 1e-2) << "one round, not two";
}

TEST_F(ResumeStateTest, ARestoredRunEndsWhatWasOnItsWay) {
  coordinator_.Fail("Push", {.status = Killed()});
  EXPECT_NE(Live().code, ExitCode::kOk);
  coordinator_.Restore();
  coordinator_.finish_at = 2;
  EXPECT_EQ(Live().code, ExitCode::kOk);
  EXPECT_THAT(log_.str(), HasSubstr("of an epoch before the run was restored"));
  EXPECT_EQ(loaded_, 4u) << "the inner optimizer goes on all the same";
}

TEST_F(ResumeStateTest, APushOnALostVersionIsNotTakenUp) {
  on_step_ = [&](uint64_t step) {
    if (step == 9) coordinator_.Fail("Push", {.status = Killed()});
    return absl::OkStatus();
  };
  EXPECT_NE(Live().code, ExitCode::kOk) << "killed while it pushed on version 2";
  coordinator_.GoBack(Version(1), 1.0F);
  on_step_ = [](uint64_t) { return Killed(); };
  EXPECT_NE(Live().code, ExitCode::kOk);
  EXPECT_THAT(log_.str(), HasSubstr("its base, version 2, is lost: the head is 1"));
  coordinator_.PublishWithout(0.0F);
  coordinator_.finish_at = 3;
  on_step_ = nullptr;
  EXPECT_EQ(Live().code, ExitCode::kOk);
  EXPECT_THAT(log_.str(), Not(HasSubstr("asking for the answer"))) << "not on the new version 2 either";
}

TEST_F(ResumeStateTest, AnotherConfigurationMakesNoPushLookLost) {
  on_step_ = [&](uint64_t step) {
    if (step == 6) coordinator_.config_version = 2;
    return absl::OkStatus();
  };
  EXPECT_EQ(Live().code, ExitCode::kOk);
  EXPECT_THAT(log_.str(), HasSubstr("the run has a new configuration"));
  EXPECT_THAT(log_.str(), Not(HasSubstr("is lost")));
}

TEST_F(ResumeStateTest, WithoutItsDiskItJoinsColdWarmsUpAndSaysSo) {
  on_step_ = [](uint64_t step) { return step == 6 ? Killed() : absl::OkStatus(); };
  EXPECT_NE(Live().code, ExitCode::kOk);
  on_step_ = nullptr;
  ASSERT_TRUE(RemoveAll(folder_).ok());
  EXPECT_EQ(Live().code, ExitCode::kOk);
  EXPECT_EQ(loaded_, 0u);
  EXPECT_THAT(log_.str(), HasSubstr("no saved state; starting from the published version"));
  EXPECT_THAT(log_.str(), HasSubstr("warming up its learning rate"));
  // H = 4 bounds the warmup.
  ASSERT_GE(learning_rates_.size(), 6u);
  EXPECT_THAT(std::vector<double>(learning_rates_.begin(), learning_rates_.begin() + 5),
              ElementsAre(::testing::DoubleEq(0.025), ::testing::DoubleEq(0.05), ::testing::DoubleEq(0.075),
                          ::testing::DoubleEq(0.1), ::testing::DoubleEq(0.1)));
}

TEST_F(ResumeStateTest, AtTheBeginningOfARunNobodyWarmsUpTwice) {
  EXPECT_EQ(Live().code, ExitCode::kOk);
  EXPECT_THAT(log_.str(), HasSubstr("no saved state; starting from the published version"));
  EXPECT_THAT(log_.str(), ::testing::Not(HasSubstr("NOT_FOUND"))) << "a first start has nothing to explain";
  EXPECT_THAT(log_.str(), ::testing::Not(HasSubstr("warming up")));
  EXPECT_DOUBLE_EQ(learning_rates_[0], 0.1);
}

TEST_F(ResumeStateTest, DamagedFilesAreRejectedWithAMessageAndItJoinsCold) {
  on_step_ = [](uint64_t step) { return step == 6 ? Killed() : absl::OkStatus(); };
  EXPECT_NE(Live().code, ExitCode::kOk);
  on_step_ = nullptr;
  const std::vector<std::string> names = ListDir(folder_).value();
  ASSERT_EQ(names.size(), 2u);
  for (const std::string& name : names) {
    ASSERT_TRUE(WriteFileAtomically(JoinPath(folder_, name), std::string(200, 'x')).ok());
  }
  EXPECT_EQ(Live().code, ExitCode::kOk);
  EXPECT_THAT(log_.str(), HasSubstr("round-000001 is damaged"));
  EXPECT_THAT(log_.str(), HasSubstr("push-0 is damaged"));
  EXPECT_THAT(log_.str(), HasSubstr("joins cold"));
}

TEST_F(ResumeStateTest, TheStateOfAnotherRunIsReplacedOnlyForARunThatWasNamed) {
  const StateOwner other{"run-0", "w1", ManifestHash(FakeReplica::MakeManifest())};
  {
    const auto checkpoint = WorkerCheckpoint::Open(folder_, other, Logger());
    RoundCheckpoint* const round = (*checkpoint)->BeginRound();
    ASSERT_NE(round, nullptr);
    round->base = Version(8);
    (*checkpoint)->SaveRound();
  }
  const WorkerEnd rejected = Live();
  EXPECT_EQ(rejected.code, ExitCode::kRejected);
  EXPECT_THAT(
      std::string(rejected.status.message()),
      AllOf(HasSubstr(folder_ + " keeps the state of run run-0, and this coordinator serves run run-1"),
            HasSubstr("--expect-run"), HasSubstr("another --state-dir")));
  EXPECT_TRUE(coordinator_.headers.empty());
  EXPECT_TRUE((*WorkerCheckpoint::Open(folder_, other, Logger()))->LoadRound().ok()) << "it is still there";

  expected_run_ = "run-1";
  EXPECT_EQ(Live().code, ExitCode::kOk);
  EXPECT_THAT(log_.str(), HasSubstr("joins cold"));
  expected_run_.clear();
  EXPECT_EQ(Live().code, ExitCode::kOk) << "the state is of this run now";
}

TEST_F(ResumeStateTest, AnotherCodecTakesTheResidualAlong) {
  on_step_ = [](uint64_t step) { return step == 10 ? Killed() : absl::OkStatus(); };
  EXPECT_NE(Live().code, ExitCode::kOk);
  const float before = coordinator_.first_parameter();
  const auto checkpoint =
      WorkerCheckpoint::Open(folder_, {"run-1", "w1", ManifestHash(FakeReplica::MakeManifest())}, Logger());
  const float residual = (*checkpoint)->LoadPush(FragmentId(0))->residual.at(0);
  ASSERT_NE(residual, 0.0F);
  on_step_ = nullptr;
  coordinator_.run.push_codec = CodecKind::kFp32;
  EXPECT_EQ(Live().code, ExitCode::kOk);
  EXPECT_NEAR(coordinator_.first_parameter(), Descend(before, 5.0F, 4) - residual, 1e-6);
}

TEST_F(ResumeStateTest, RejectedOnTheLastBaseItTrainsOnItAgainOnceTheRunIsExtended) {
  coordinator_.Fail("Push", {.status = WithRejection(absl::FailedPreconditionError("the run is finished"),
                                                     RejectionReason::kStaleBase)});
  coordinator_.Fail("Pull", {});
  coordinator_.Fail("Pull", {.status = Killed()});
  EXPECT_NE(Live().code, ExitCode::kOk);
  coordinator_.finish_at = 1;
  EXPECT_EQ(Live().code, ExitCode::kOk);
  ASSERT_EQ(coordinator_.headers.size(), 2u);
  EXPECT_EQ(coordinator_.headers.back().key.base, Version(0));
}

TEST_F(ResumeStateTest, EachRoundIsConfirmedBySignature) {
  const ContentHash first = coordinator_.PublishedHash();
  EXPECT_EQ(Live().code, ExitCode::kOk);
  ASSERT_EQ(coordinator_.confirmations.size(), 3u);
  EXPECT_EQ(coordinator_.confirmations[0].published, first);
  for (uint64_t version = 0; version < 3; ++version) {
    const Confirmation& confirmation = coordinator_.confirmations[version];
    EXPECT_EQ(confirmation.version, Version(version));
    const std::string text = ConfirmationText({"run-1", Epoch(77), "w1"}, confirmation);
    EXPECT_TRUE(VerifySignature(key_.public_key(), text, confirmation.signature));
  }
}

TEST_F(ResumeStateTest, ADrainedWorkerComesBackBehindWhatItPushed) {
  on_step_ = [&](uint64_t step) {
    if (step == 6) worker_->RequestDrain();
    return absl::OkStatus();
  };
  WorkerEnd end = Live();
  EXPECT_EQ(end.code, ExitCode::kOk);
  EXPECT_FALSE(end.restart);
  EXPECT_THAT(coordinator_.left, ElementsAre("drained"));
  EXPECT_EQ(coordinator_.headers.back().steps, 2u) << "what was done of the round, weighted by its tokens";
  EXPECT_EQ(coordinator_.headers.back().tokens, 2u * 24);
  on_step_ = nullptr;
  coordinator_.pulls_cancelled = false;
  end = Live();
  EXPECT_EQ(end.code, ExitCode::kOk);
  EXPECT_EQ(loaded_, 6u) << "also the part of a round that it pushed is behind its optimizer";
  EXPECT_EQ(coordinator_.headers.back().samples_consumed, 3u * 10);
}

TEST_F(ResumeStateTest, APushWithoutAnAnswerInTimeIsKeptForTheNextLife) {
  on_step_ = [&](uint64_t step) {
    if (step == 6) worker_->RequestDrain();
    return absl::OkStatus();
  };
  coordinator_.Fail("Push", {});
  coordinator_.Fail(
      "Push", {.status = absl::CancelledError("no time left"), .before = [&] { worker_->RequestStop(); }});
  const WorkerEnd end = Live();
  EXPECT_EQ(end.code, ExitCode::kUncounted);
  EXPECT_THAT(end.status.ToString(), HasSubstr("on version 1 of fragment 0, was not acknowledged"));
  EXPECT_THAT(end.status.ToString(), HasSubstr("The state directory keeps it"));
  EXPECT_EQ(coordinator_.head(), Version(1));
  on_step_ = nullptr;
  coordinator_.pulls_cancelled = false;
  const size_t before = coordinator_.headers.size();
  EXPECT_EQ(Live().code, ExitCode::kOk);
  ASSERT_GT(coordinator_.headers.size(), before);
  EXPECT_EQ(coordinator_.headers[before].key.base, Version(1)) << "asked about, and sent again";
  EXPECT_EQ(coordinator_.headers[before].steps, 2u);
}

TEST_F(ResumeStateTest, ARestartKeepsTheMembership) {
  on_step_ = [&](uint64_t step) {
    if (step != 6) return absl::OkStatus();
    auto& worker_status = const_cast<WorkerStatus&>(worker_->worker_status());
    worker_status.Receive(*worker_status.member(), {.command = WorkerCommand::kRestart});
    return absl::OkStatus();
  };
  const WorkerEnd end = Live();
  EXPECT_EQ(end.code, ExitCode::kOk) << end.status;
  EXPECT_TRUE(end.restart);
  EXPECT_EQ(coordinator_.head(), Version(2)) << "the round was finished and pushed";
  EXPECT_TRUE(coordinator_.left.empty()) << "its lease and its part of the data stay";
}

struct CodecChange {
  CodecKind before;
  CodecKind after;
};

/// The run's push codec changes while the worker is away, and its last push has no verdict on disk.
class CodecChangeTest : public ResumeStateTest, public ::testing::WithParamInterface<CodecChange> {
 protected:
  CodecChangeTest() { coordinator_.run.push_codec = GetParam().before; }

  /// The first life ends in its first push.
  void DieWhilePushing(FakeCoordinator::Fault how) {
    how.status = Killed();
    coordinator_.Fail("Push", how);
    EXPECT_NE(Live().code, ExitCode::kOk);
    const PushRecord kept = Kept();
    ASSERT_FALSE(kept.verdict.has_value());
    content_.assign(coordinator_.parameters().size(), 0.0F);
    residual_ = content_;
    CodecFor(kept.header.codec).DecodeRange(kept.payload, content_.size(), 0, content_);
    std::ranges::copy(kept.residual, residual_.begin());
    coordinator_.run.push_codec = GetParam().after;
  }

  PushRecord Kept() const {
    const auto checkpoint =
        WorkerCheckpoint::Open(folder_, {"run-1", "w1", ManifestHash(FakeReplica::MakeManifest())}, Logger());
    return (*checkpoint)->LoadPush(FragmentId(0)).value();
  }

  /// Lives for one more round, and compares what was sent in it and what is left with what it was made of:
  /// the round's own progress, the residual, and the content where that does not count already.
  void LiveAndExpect(bool content_carried) {
    const std::vector<float> base = coordinator_.parameters();
    const size_t sent = coordinator_.headers.size();
    coordinator_.finish_at = coordinator_.head().value() + 1;
    EXPECT_EQ(Live().code, ExitCode::kOk);
    ASSERT_EQ(coordinator_.headers.size(), sent + 1) << "bytes of the old codec were sent again";
    EXPECT_EQ(coordinator_.headers.back().codec, GetParam().after);
    EXPECT_EQ(coordinator_.headers.back().samples_consumed, 24u) << "behind the samples of the kept one";
    std::vector<float> left = Kept().residual;
    left.resize(base.size());
    for (size_t i = 0; i < FakeReplica(0).manifest().tensors[0].elements(); ++i) {
      const float made_of =
          base[i] - Descend(base[i], 5.0F, 4) + residual_[i] + (content_carried ? content_[i] : 0.0F);
      EXPECT_NEAR(base[i] - coordinator_.parameters()[i] + left[i], made_of, 1e-5) << "value " << i;
    }
    EXPECT_THAT(log_.str(), ::testing::Not(HasSubstr("cannot be used")));
  }

  std::vector<float> content_;
  std::vector<float> residual_;
};

INSTANTIATE_TEST_SUITE_P(Codecs, CodecChangeTest,
                         ::testing::Values(CodecChange{CodecKind::kFp32, CodecKind::kInt8},
                                           CodecChange{CodecKind::kInt8, CodecKind::kFp32},
                                           CodecChange{CodecKind::kE3m0, CodecKind::kTopK64},
                                           CodecChange{CodecKind::kTopK64, CodecKind::kE3m0}),
                         [](const auto& test) {
                           return std::string(CodecName(test.param.before)) + "_to_" +
                                  std::string(CodecName(test.param.after));
                         });

TEST_P(CodecChangeTest, ContentThatDoesNotCountIsCarried) {
  DieWhilePushing({});
  coordinator_.PublishWithout(0.5F);
  LiveAndExpect(/*content_carried=*/true);
  EXPECT_EQ(coordinator_.Calls("GetPushStatus"), 1u);
}

TEST_P(CodecChangeTest, ContentThatCountsIsNotCarried) {
  DieWhilePushing({.applied = true});
  // Its codec was the run's when it came.
  ASSERT_EQ(coordinator_.head(), Version(1));
  LiveAndExpect(/*content_carried=*/false);
  EXPECT_EQ(coordinator_.Calls("GetPushStatus"), 1u);
}

TEST_P(CodecChangeTest, ContentThatNeverArrivedIsCarriedIntoTheRoundThatIsOpen) {
  DieWhilePushing({});
  LiveAndExpect(/*content_carried=*/true);
  EXPECT_EQ(coordinator_.headers.back().key.base, Version(0)) << "the round on that base is still open";
}

TEST_P(CodecChangeTest, RejectedForItsCodecItTakesTheConfigurationAndTrainsOnThatBaseAgain) {
  // Changed behind the worker's back: the round of its base takes the new codec only.
  coordinator_.Fail("Push", {.before = [&] {
                      coordinator_.run.push_codec = GetParam().after;
                      ++coordinator_.config_version;
                    }});
  coordinator_.finish_at = 1;
  const std::vector<float> base = coordinator_.parameters();
  EXPECT_EQ(Live().code, ExitCode::kOk);
  ASSERT_EQ(coordinator_.headers.size(), 2u);
  EXPECT_EQ(coordinator_.headers.back().codec, GetParam().after);
  EXPECT_EQ(coordinator_.headers.back().key.base, Version(0)) << "the round waits for this worker";
  EXPECT_EQ(coordinator_.headers.back().samples_consumed, 24u) << "behind the samples of the refused one";
  EXPECT_THAT(log_.str(), HasSubstr("was refused for its codec"));
  std::vector<float> left = Kept().residual;
  left.resize(base.size());
  for (size_t i = 0; i < FakeReplica(0).manifest().tensors[0].elements(); ++i) {
    const float progress = base[i] - Descend(base[i], 5.0F, 4);
    EXPECT_NEAR(base[i] - coordinator_.parameters()[i] + left[i], 2 * progress, 1e-5) << "value " << i;
  }
}

TEST_P(CodecChangeTest, APartThatArrivedIsNoUse) {
  DieWhilePushing({.received_bytes = 100});
  LiveAndExpect(/*content_carried=*/true);
  EXPECT_EQ(coordinator_.starts.back(), 0u);
}

TEST_P(CodecChangeTest, WaitsForTheVerdictOnAnUploadThatIsBeingAccepted) {
  DieWhilePushing({.applied = true});
  coordinator_.accepting_for = 2;
  LiveAndExpect(/*content_carried=*/false);
  EXPECT_EQ(coordinator_.Calls("GetPushStatus"), 3u);
}

TEST_P(CodecChangeTest, KilledAgainItStillHasTheContent) {
  for (const bool missed : {false, true}) {
    SCOPED_TRACE(missed);
    if (missed) coordinator_.PublishWithout(0.5F);
    if (!missed) DieWhilePushing({});
    on_step_ = [](uint64_t) { return Killed(); };
    EXPECT_NE(Live().code, ExitCode::kOk);
    on_step_ = nullptr;
    EXPECT_EQ(Kept().verdict, missed ? std::optional(Verdict::kLost) : std::nullopt);
  }
  LiveAndExpect(/*content_carried=*/true);
  EXPECT_EQ(coordinator_.Calls("GetPushStatus"), 2u) << "a verdict is written down";
}

TEST_P(CodecChangeTest, WhatNobodyRemembersIsNotCarried) {
  DieWhilePushing({});
  for (int i = 0; i < 40; ++i) coordinator_.PublishWithout(0.0F);
  const std::vector<float> base = coordinator_.parameters();
  coordinator_.finish_at = 41;
  EXPECT_EQ(Live().code, ExitCode::kOk);
  EXPECT_THAT(log_.str(), HasSubstr("no longer knows whether it counted"));
  std::vector<float> left = Kept().residual;
  left.resize(base.size());
  EXPECT_NEAR(base[0] - coordinator_.first_parameter() + left[0],
              base[0] - Descend(base[0], 5.0F, 4) + residual_[0], 1e-5);
}

}  // namespace
}  // namespace atl

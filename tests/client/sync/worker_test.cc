#include "client/sync/worker.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/sync/harness.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class WorkerTest : public ::testing::Test {
 protected:
  WorkerEnd Run(WorkerRole role = WorkerRole::kTrainer) {
    WorkerOptions options{.join = TestJoin()};
    options.join.role = role;
    WorkerDeps deps{
        .data = &coordinator_,
        .control = &coordinator_,
        .clock = &clock_,
        .sleeper = &sleeper_,
        .observer = &observer_,
        .log = Logger::Create({.format = LogFormat::kJson, .stream = &log_, .file = ""}).value(),
        .make_replica = [this](const JoinedRun& info) -> absl::StatusOr<std::unique_ptr<Replica>> {
          ++built_;
          if (!make_error_.ok()) return make_error_;
          auto replica = std::make_unique<FakeReplica>(5.0F);
          replica->on_step = on_step_;
          replica->on_evaluate = on_evaluate_;
          replica_ = replica.get();
          return replica;
        }};
    worker_.emplace(options, deps);
    return worker_->Run();
  }

  std::ostringstream log_;
  FakeClock clock_;
  FakeSleeper sleeper_{&clock_};
  CountingObserver observer_;
  FakeCoordinator coordinator_;
  std::function<absl::Status(uint64_t)> on_step_;
  std::function<void()> on_evaluate_;
  absl::Status make_error_;
  int built_ = 0;
  FakeReplica* replica_ = nullptr;
  std::optional<Worker> worker_;
};

TEST_F(WorkerTest, LivesAWholeRun) {
  coordinator_.grant_seed = true;
  coordinator_.samples_consumed = 40;
  coordinator_.evaluate_all = true;
  const WorkerEnd end = Run();
  EXPECT_EQ(end.code, ExitCode::kOk) << end.status;
  ASSERT_EQ(coordinator_.joins.size(), 2u);
  EXPECT_EQ(coordinator_.joins[0].manifest_hash, "");
  EXPECT_EQ(coordinator_.joins[1].manifest_hash, ManifestHash(FakeReplica::MakeManifest()));
  EXPECT_EQ(coordinator_.headers.back().samples_consumed, 40u + 12 * 3)
      << "continued from the committed position";
  EXPECT_EQ(coordinator_.evaluations.size(), 4u) << "the last one is delivered before leaving";
  EXPECT_THAT(coordinator_.left, ElementsAre("the run is finished"));
}

TEST_F(WorkerTest, WaitsForACoordinatorThatIsNotThereYet) {
  coordinator_.SeedWith(1.0F);
  for (int i = 0; i < 20; ++i) coordinator_.Fail("Join", {.status = absl::UnavailableError("refused")});
  EXPECT_EQ(Run().code, ExitCode::kOk);
  EXPECT_EQ(sleeper_.slept.size(), 20u);
}

TEST_F(WorkerTest, FinalRejectionsHaveExitCodes) {
  struct Row {
    absl::StatusCode code;
    RejectionReason reason;
    ExitCode exit;
  };
  using Code = absl::StatusCode;
  for (const Row& row :
       {Row{Code::kAlreadyExists, RejectionReason::kNameTaken, ExitCode::kRejected},
        Row{Code::kFailedPrecondition, RejectionReason::kProtocolMismatch, ExitCode::kRejected},
        Row{Code::kFailedPrecondition, RejectionReason::kWrongRun, ExitCode::kRejected},
        Row{Code::kFailedPrecondition, RejectionReason::kSuperseded, ExitCode::kRejected},
        Row{Code::kFailedPrecondition, RejectionReason::kDatasetMismatch, ExitCode::kBadFiles}}) {
    coordinator_.Fail("Join", {.status = WithRejection(absl::Status(row.code, "no"), row.reason)});
    const WorkerEnd end = Run();
    EXPECT_EQ(end.code, row.exit) << RejectionReasonName(row.reason);
    EXPECT_EQ(RejectionReasonOf(end.status), row.reason);
  }
  EXPECT_EQ(built_, 0);
  EXPECT_TRUE(coordinator_.left.empty());
}

TEST_F(WorkerTest, AnotherModelIsRejectedWithTheHash) {
  coordinator_.SeedWith(1.0F);
  coordinator_.Fail("Join", {});
  coordinator_.Fail("Join", {.status = WithRejection(absl::FailedPreconditionError("another model"),
                                                     RejectionReason::kManifestMismatch)});
  EXPECT_EQ(Run().code, ExitCode::kRejected);
}

TEST_F(WorkerTest, AModelThatCannotBeBuiltEndsIt) {
  make_error_ = absl::NotFoundError("train.bin is missing");
  const WorkerEnd end = Run();
  EXPECT_EQ(end.code, ExitCode::kBadFiles);
  EXPECT_THAT(std::string(end.status.message()), HasSubstr("train.bin"));
  EXPECT_TRUE(coordinator_.left.empty()) << "it never became a member";
}

TEST_F(WorkerTest, ARestoredRunIsJoinedAnewWithTheSameModel) {
  coordinator_.SeedWith(1.0F);
  coordinator_.finish_at = 4;
  on_step_ = [&](uint64_t step) {
    if (step == 6) coordinator_.Restore();
    return absl::OkStatus();
  };
  const WorkerEnd end = Run();
  EXPECT_EQ(end.code, ExitCode::kOk) << end.status;
  EXPECT_EQ(built_, 1);
  // The configuration, the first epoch, the second: nobody hears of it twice.
  ASSERT_EQ(coordinator_.joins.size(), 3u);
  EXPECT_TRUE(coordinator_.joins[2].BecomesMember());
  // Rounds on 0, (1: void), 2, 3.
  EXPECT_NEAR(coordinator_.first_parameter(), Descend(1.0F, 5.0F, 12), 1e-5);
}

TEST_F(WorkerTest, ADataDirectoryThatWasPutBackIsFollowedLoudly) {
  coordinator_.SeedWith(1.0F);
  coordinator_.finish_at = 4;
  on_step_ = [&](uint64_t step) {
    // In the round on version 3.
    if (step == 14) coordinator_.GoBack(Version(1), 0.5F);
    return absl::OkStatus();
  };
  const WorkerEnd end = Run();
  EXPECT_EQ(end.code, ExitCode::kOk) << end.status;
  EXPECT_EQ(coordinator_.head(), Version(4));
  EXPECT_THAT(log_.str(), HasSubstr("went back from version 3 to 1 of fragment 0 in one epoch"));
  // Rounds on 1, 2, 3 of the older copy, without anything of the lost ones.
  EXPECT_NEAR(coordinator_.first_parameter(), Descend(0.5F, 5.0F, 12), 1e-5);
  ASSERT_EQ(coordinator_.joins.size(), 3u) << "the configuration, the member, and again";
}

TEST_F(WorkerTest, AnotherPartOfTheDataIsTakenUp) {
  coordinator_.SeedWith(1.0F);
  coordinator_.Fail("Push",
                    {.status = WithRejection(absl::NotFoundError("lost"), RejectionReason::kNotAMember),
                     .before = [&] { coordinator_.partition = 3; }});
  EXPECT_EQ(Run().code, ExitCode::kOk);
  EXPECT_EQ(built_, 1) << "the inner optimizer's state stays";
  EXPECT_THAT(replica_->partitions, ElementsAre(0, 3));
}

TEST_F(WorkerTest, AnotherConfigurationMeansAnotherModel) {
  coordinator_.SeedWith(1.0F);
  coordinator_.Fail("Push",
                    {.status = WithRejection(absl::NotFoundError("lost"), RejectionReason::kNotAMember),
                     .before = [&] { coordinator_.config_version = 2; }});
  EXPECT_EQ(Run().code, ExitCode::kOk);
  EXPECT_EQ(built_, 2);
}

TEST_F(WorkerTest, ARoundWithAnotherConfigurationIsTrainedWithIt) {
  coordinator_.SeedWith(1.0F);
  coordinator_.samples_consumed = 40;
  on_step_ = [&](uint64_t step) {
    if (step == 5) {
      coordinator_.config_version = 2;
      coordinator_.run.inner.steps = 6;
    }
    return absl::OkStatus();
  };
  EXPECT_EQ(Run().code, ExitCode::kOk);
  EXPECT_EQ(built_, 2);
  ASSERT_EQ(coordinator_.joins.size(), 3u);
  EXPECT_FALSE(coordinator_.joins[2].BecomesMember()) << "its membership stays as it is";
  ASSERT_EQ(coordinator_.headers.size(), 3u);
  EXPECT_EQ(coordinator_.headers[2].steps, 6u);
  EXPECT_EQ(coordinator_.headers[2].samples_consumed, 40u + 14 * 3) << "no sample twice";
}

TEST_F(WorkerTest, ARestoreRightAfterAConfigurationChangeIsJoined) {
  coordinator_.SeedWith(1.0F);
  coordinator_.finish_at = 4;
  on_step_ = [&](uint64_t step) {
    if (step == 5) coordinator_.config_version = 2;
    return absl::OkStatus();
  };
  // The description of the run, the membership, and the description of the new configuration.
  for (int i = 0; i < 2; ++i) coordinator_.Fail("Join", {});
  coordinator_.Fail("Join", {.before = [&] { coordinator_.Restore(); }});
  const WorkerEnd end = Run();
  EXPECT_EQ(end.code, ExitCode::kOk) << end.status;
  EXPECT_EQ(built_, 2);
  ASSERT_EQ(coordinator_.joins.size(), 4u);
  EXPECT_TRUE(coordinator_.joins[3].BecomesMember());
  EXPECT_THAT(coordinator_.left, ElementsAre("the run is finished"));
}

TEST_F(WorkerTest, StopsWhenAsked) {
  coordinator_.SeedWith(1.0F);
  on_step_ = [&](uint64_t step) {
    if (step == 2) worker_->RequestStop();
    return absl::OkStatus();
  };
  EXPECT_EQ(Run().code, ExitCode::kOk);
  EXPECT_EQ(replica_->steps, 2u);
  EXPECT_THAT(coordinator_.left, ElementsAre("stopped"));
}

TEST_F(WorkerTest, SaysWhetherItReachedACoordinator) {
  coordinator_.SeedWith(1.0F);
  EXPECT_TRUE(Run().reached);
  // More than the sleeper sleeps before it is interrupted.
  for (int i = 0; i < 200; ++i) coordinator_.Fail("Join", {.status = absl::UnavailableError("refused")});
  sleeper_.on_sleep = [&](size_t) { worker_->RequestStop(); };
  const WorkerEnd end = Run();
  EXPECT_EQ(end.code, ExitCode::kOk) << end.status;
  EXPECT_FALSE(end.reached);
}

TEST_F(WorkerTest, StopsWhileItWaits) {
  coordinator_.SeedWith(1.0F);
  coordinator_.hold_rounds = true;
  coordinator_.on_not_yet = [&](size_t times) {
    if (times == 2) worker_->RequestStop();
  };
  EXPECT_EQ(Run().code, ExitCode::kOk);
  EXPECT_THAT(coordinator_.left, ElementsAre("stopped"));
}

TEST_F(WorkerTest, AStopSaysWhy) {
  coordinator_.SeedWith(1.0F);
  on_step_ = [&](uint64_t) {
    worker_->RequestStop(Worker::kGoodbye, "its training process has ended");
    worker_->RequestStop(Worker::kGoodbye, "later");
    return absl::OkStatus();
  };
  EXPECT_EQ(Run().code, ExitCode::kOk);
  EXPECT_THAT(coordinator_.left, ElementsAre("its training process has ended"));
}

TEST_F(WorkerTest, DivergenceHasItsOwnExitCode) {
  coordinator_.SeedWith(1.0F);
  on_step_ = [](uint64_t) { return absl::FailedPreconditionError("nan"); };
  const WorkerEnd end = Run();
  EXPECT_EQ(end.code, ExitCode::kNumerics);
  EXPECT_THAT(std::string(end.status.message()),
              HasSubstr("3 rounds in a row were not finite, the last because nan. Lower the learning "
                        "rate, or check the data"));
  EXPECT_EQ(coordinator_.left.size(), 1u);
}

TEST_F(WorkerTest, ADrainSaysWhenTheLastPushDidNotCount) {
  coordinator_.SeedWith(1.0F);
  on_step_ = [&](uint64_t step) {
    if (step == 2) worker_->RequestDrain();
    return absl::OkStatus();
  };
  coordinator_.Fail("Push", {.status = WithRejection(absl::FailedPreconditionError("too late"),
                                                     RejectionReason::kStaleBase)});
  const WorkerEnd end = Run();
  EXPECT_EQ(end.code, ExitCode::kUncounted);
  EXPECT_THAT(end.status.ToString(), HasSubstr("on version 0 of fragment 0, did not count"));
  EXPECT_THAT(coordinator_.left, ElementsAre(HasSubstr("did not count")));
}

TEST_F(WorkerTest, ADrainSaysThatALastPushMayHaveCounted) {
  coordinator_.SeedWith(1.0F);
  coordinator_.finish_at = 100;
  on_step_ = [&](uint64_t step) {
    if (step == 2) worker_->RequestDrain();
    return absl::OkStatus();
  };
  coordinator_.Fail("Push", {.status = absl::UnavailableError("reset"), .applied = true});
  coordinator_.Fail("GetPushStatus", {.status = absl::UnavailableError("away"), .before = [&] {
                                        while (coordinator_.head() < Version(34)) {
                                          coordinator_.PublishWithout(0);
                                        }
                                        coordinator_.Forget();
                                      }});
  const WorkerEnd end = Run();
  EXPECT_EQ(end.code, ExitCode::kUncounted);
  EXPECT_THAT(end.status.ToString(),
              AllOf(HasSubstr("may not count"), HasSubstr("Its content is not sent again")));
  EXPECT_THAT(coordinator_.left, ElementsAre(HasSubstr("may not count")));
}

TEST_F(WorkerTest, ADrainWhoseLastPushCountedIsACleanEnd) {
  coordinator_.SeedWith(1.0F);
  coordinator_.on_not_yet = [&](size_t) { coordinator_.PublishWithout(0.5F); };
  on_step_ = [&](uint64_t step) {
    if (step == 6) worker_->RequestDrain();
    return absl::OkStatus();
  };
  coordinator_.Fail("Push", {.status = WithRejection(absl::FailedPreconditionError("too late"),
                                                     RejectionReason::kStaleBase)});
  EXPECT_EQ(Run().code, ExitCode::kOk) << "the push after the refused one counted";
  EXPECT_THAT(coordinator_.left, ElementsAre("drained"));
}

TEST_F(WorkerTest, ADrainWithoutAnAnswerInTimeIsNoCleanEnd) {
  coordinator_.SeedWith(1.0F);
  on_step_ = [&](uint64_t step) {
    if (step == 2) worker_->RequestDrain();
    return absl::OkStatus();
  };
  coordinator_.Fail(
      "Push", {.status = absl::CancelledError("no time left"), .before = [&] { worker_->RequestStop(); }});
  const WorkerEnd end = Run();
  EXPECT_EQ(end.code, ExitCode::kUncounted);
  EXPECT_THAT(end.status.ToString(), AllOf(HasSubstr("on version 0 of fragment 0, was not acknowledged"),
                                           HasSubstr("the state directory does not keep it")))
      << "this worker has none";
  EXPECT_THAT(coordinator_.left, ElementsAre(HasSubstr("was not acknowledged")));
}

TEST_F(WorkerTest, ADrainWithoutTimeToEncodeSaysThatItsStepsAreLost) {
  coordinator_.SeedWith(1.0F);
  on_step_ = [&](uint64_t step) {
    if (step == 2) {
      worker_->RequestDrain();
      worker_->RequestStop();
    }
    return absl::OkStatus();
  };
  const WorkerEnd end = Run();
  EXPECT_EQ(end.code, ExitCode::kUncounted);
  EXPECT_THAT(end.status.ToString(), AllOf(HasSubstr("was not sent"), HasSubstr("They are lost")));
  EXPECT_EQ(coordinator_.Calls("Push"), 0u);
}

TEST_F(WorkerTest, DrainedWhileItEvaluatesItReportsTheLoss) {
  coordinator_.SeedWith(1.0F);
  coordinator_.evaluate_all = true;
  on_evaluate_ = [&] { EXPECT_TRUE(worker_->RequestDrain()) << "a stop would cancel the report"; };
  // The heartbeats after the evaluation; what they fail to deliver is tried again before the goodbye.
  for (int i = 0; i < 3; ++i) coordinator_.Fail("Heartbeat", {.status = absl::UnavailableError("away")});
  for (const WorkerRole role : {WorkerRole::kTrainer, WorkerRole::kEvaluator}) {
    coordinator_.evaluations.clear();
    coordinator_.left.clear();
    coordinator_.pulls_cancelled = false;
    EXPECT_EQ(Run(role).code, ExitCode::kOk);
    EXPECT_EQ(replica_->evaluations, 1u);
    EXPECT_EQ(replica_->steps, 0u);
    EXPECT_THAT(coordinator_.evaluations, Contains(EvaluationReport{Version(0), 1.0, 5}));
    EXPECT_THAT(coordinator_.left, ElementsAre("drained"));
  }
}

TEST_F(WorkerTest, ASupersededWorkerDoesNotSayGoodbyeForItsSuccessor) {
  coordinator_.SeedWith(1.0F);
  coordinator_.Fail("Push", {.status = WithRejection(absl::FailedPreconditionError("superseded"),
                                                     RejectionReason::kSuperseded)});
  EXPECT_EQ(Run().code, ExitCode::kRejected);
  EXPECT_TRUE(coordinator_.left.empty());
}

TEST_F(WorkerTest, ABannedWorkerDoesNotSayGoodbye) {
  coordinator_.SeedWith(1.0F);
  coordinator_.Fail("Push", {.status = WithRejection(absl::PermissionDeniedError("the name is banned"),
                                                     RejectionReason::kBanned)});
  EXPECT_EQ(Run().code, ExitCode::kRejected);
  EXPECT_TRUE(coordinator_.left.empty());
}

TEST_F(WorkerTest, ARemovedWorkerDoesNotComplainThatItCannotLeave) {
  coordinator_.SeedWith(1.0F);
  coordinator_.Fail("Leave", {.status = WithRejection(absl::NotFoundError("has left the run; join again"),
                                                      RejectionReason::kNotAMember)});
  EXPECT_EQ(Run().code, ExitCode::kOk);
  EXPECT_THAT(log_.str(), AllOf(HasSubstr("had removed this worker"), Not(HasSubstr("goodbye"))));
}

TEST_F(WorkerTest, AnEvaluatorEvaluatesAndNeverPushes) {
  coordinator_.SeedWith(1.0F);
  coordinator_.evaluate_all = true;
  coordinator_.partition.reset();
  coordinator_.on_not_yet = [&](size_t) { coordinator_.PublishWithout(0.5F); };
  EXPECT_EQ(Run(WorkerRole::kEvaluator).code, ExitCode::kOk);
  EXPECT_TRUE(coordinator_.headers.empty());
  ASSERT_EQ(coordinator_.evaluations.size(), 4u);
  EXPECT_EQ(coordinator_.evaluations[3], (EvaluationReport{Version(3), 2.5, 5}));
}

TEST_F(WorkerTest, AnEvaluatorFollowsANewConfiguration) {
  coordinator_.SeedWith(1.0F);
  coordinator_.evaluate_all = true;
  coordinator_.partition.reset();
  coordinator_.on_not_yet = [&](size_t) {
    coordinator_.config_version = 2;
    coordinator_.run.evaluation_batches = 7;
    coordinator_.PublishWithout(0.5F);
  };
  EXPECT_EQ(Run(WorkerRole::kEvaluator).code, ExitCode::kOk);
  ASSERT_EQ(coordinator_.evaluations.size(), 4u);
  EXPECT_EQ(coordinator_.evaluations[0].tokens, 5u);
  EXPECT_EQ(coordinator_.evaluations[1], (EvaluationReport{Version(1), 1.5, 7}));
}

}  // namespace
}  // namespace atl

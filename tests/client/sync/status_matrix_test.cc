// Every status in every call of a whole life: the worker goes on, or ends with the cause.
#include <string>

#include "client/sync/worker.h"
#include "gtest/gtest.h"
#include "tests/client/sync/harness.h"

namespace atl {
namespace {

constexpr absl::StatusCode kRetried[] = {
    absl::StatusCode::kUnknown,  absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kResourceExhausted,
    absl::StatusCode::kAborted,  absl::StatusCode::kUnimplemented,    absl::StatusCode::kInternal,
    absl::StatusCode::kDataLoss, absl::StatusCode::kUnavailable};
constexpr absl::StatusCode kFinal[] = {
    absl::StatusCode::kInvalidArgument,  absl::StatusCode::kNotFound,   absl::StatusCode::kAlreadyExists,
    absl::StatusCode::kPermissionDenied, absl::StatusCode::kOutOfRange, absl::StatusCode::kFailedPrecondition,
    absl::StatusCode::kUnauthenticated};

/// What heartbeats reach, from a thread of their own.
class Control final : public CoordinatorConnection {
 public:
  absl::StatusOr<HeartbeatReply> Heartbeat(const MemberRef&, const HeartbeatCall& report) override {
    const MutexLock lock(&mutex_);
    if (!faults_.empty()) {
      const absl::Status fault = faults_.back();
      faults_.pop_back();
      return fault;
    }
    evaluations_ += report.evaluations.size();
    confirmations_ += report.confirmations.size();
    return HeartbeatReply{};
  }
  /// What all workers signed: nothing, as far as it answers.
  absl::StatusOr<ConfirmationPage> GetConfirmations(const MemberRef&, const ConfirmationQuery&,
                                                    Duration) override {
    const MutexLock lock(&mutex_);
    ++looks_;
    if (unshown_ > 0) {
      --unshown_;
      return hidden_;
    }
    return ConfirmationPage{};
  }
  void Fail(const absl::Status& status, int times) {
    const MutexLock lock(&mutex_);
    faults_.assign(static_cast<size_t>(times), status);
  }
  void Hide(const absl::Status& status, int times) {
    const MutexLock lock(&mutex_);
    hidden_ = status;
    unshown_ = times;
  }
  size_t looks() {
    const MutexLock lock(&mutex_);
    return looks_;
  }
  size_t evaluations() {
    const MutexLock lock(&mutex_);
    return evaluations_;
  }
  size_t confirmations() {
    const MutexLock lock(&mutex_);
    return confirmations_;
  }

  absl::StatusOr<JoinedRun> Join(const JoinCall&) override { return Never(); }
  absl::Status SeedParameters(const MemberRef&, const Manifest&, std::span<const SeedFragment>) override {
    return Never();
  }
  absl::StatusOr<PulledVersion> Pull(const MemberRef&, const PullRequest&, std::span<std::byte>) override {
    return Never();
  }
  absl::StatusOr<PushReceipt> Push(const MemberRef&, const PushHeader&, std::span<const std::byte>,
                                   uint64_t) override {
    return Never();
  }
  absl::StatusOr<PushStatusReply> GetPushStatus(const MemberRef&, const PushKey&) override { return Never(); }
  absl::Status Leave(const MemberRef&, const std::string&) override { return Never(); }
  void CancelPulls() override {}
  void CancelPushes() override {}

 private:
  static absl::Status Never() { return absl::InternalError("only heartbeats come this way"); }

  Mutex mutex_;
  std::vector<absl::Status> faults_ ABSL_GUARDED_BY(mutex_);
  size_t evaluations_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t confirmations_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status hidden_ ABSL_GUARDED_BY(mutex_);
  int unshown_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t looks_ ABSL_GUARDED_BY(mutex_) = 0;
};

/// A worker and a coordinator of its own, in one of whose calls things go wrong.
struct Life {
  void Break(const std::string& call, const absl::Status& with) {
    if (call == "Heartbeat") return control.Fail(with, 2);
    if (call == "GetConfirmations") return control.Hide(with, 2);
    // It is asked only about a push whose answer is missing.
    if (call == "GetPushStatus")
      coordinator.Fail("Push", {.status = absl::UnavailableError("the line broke")});
    // Another grant would come with a heartbeat; here it is the answer that is lost.
    if (call == "SeedParameters") return coordinator.Fail(call, {.status = with, .applied = true});
    coordinator.Fail(call, {.status = with});
    coordinator.Fail(call, {.status = with});
  }

  WorkerEnd Run() {
    WorkerDeps deps{.data = &coordinator,
                    .control = &control,
                    .clock = &clock,
                    .sleeper = &sleeper,
                    .observer = &observer,
                    .log = Logger(),
                    .make_replica = [](const JoinedRun&) -> absl::StatusOr<std::unique_ptr<Replica>> {
                      return std::make_unique<FakeReplica>(5.0F);
                    }};
    WorkerOptions options{.join = TestJoin()};
    options.key = SigningKey::Generate();
    coordinator.grant_seed = true;
    coordinator.evaluate_all = true;
    return Worker(options, deps).Run();
  }

  FakeClock clock;
  FakeSleeper sleeper{&clock};
  CountingObserver observer;
  FakeCoordinator coordinator;
  Control control;
};

constexpr const char* kCalls[] = {"Join", "Heartbeat",     "SeedParameters", "Pull",
                                  "Push", "GetPushStatus", "Leave",          "GetConfirmations"};

TEST(StatusMatrixTest, WhatARestartBringsIsLivedThrough) {
  for (const std::string call : kCalls) {
    for (const absl::StatusCode code : kRetried) {
      Life life;
      life.Break(call, absl::Status(code, "as told"));
      const WorkerEnd end = life.Run();
      const std::string what = call + ": " + absl::StatusCodeToString(code);
      EXPECT_EQ(end.code, ExitCode::kOk) << what << ": " << end.status;
      EXPECT_EQ(life.coordinator.head(), Version(3)) << what << ": a contribution was lost";
      EXPECT_EQ(life.control.evaluations(), 4u) << what << ": an evaluation was lost";
      EXPECT_EQ(life.control.confirmations(), 3u) << what << ": a confirmation was lost";
      EXPECT_EQ(life.coordinator.left.size(), 1u) << what << ": it left without a word";
      EXPECT_GE(life.control.looks(), 1u) << what << ": it did not ask what others signed";
    }
  }
}

TEST(StatusMatrixTest, WhatIsFinalEndsItWithTheCause) {
  for (const std::string call : {"Join", "Pull", "Push", "GetPushStatus"}) {
    for (const absl::StatusCode code : kFinal) {
      Life life;
      const absl::Status cause(code, "as told");
      life.Break(call, cause);
      const WorkerEnd end = life.Run();
      const std::string what = call + ": " + absl::StatusCodeToString(code);
      EXPECT_EQ(end.status, cause) << what;
      EXPECT_EQ(end.code, DefaultExitCode(cause)) << what;
    }
  }
}

TEST(StatusMatrixTest, HeartbeatsLooksAndGoodbyesEndNobody) {
  for (const std::string call : {"Heartbeat", "GetConfirmations", "Leave"}) {
    for (const absl::StatusCode code : kFinal) {
      Life life;
      life.Break(call, absl::Status(code, "as told"));
      const WorkerEnd end = life.Run();
      EXPECT_EQ(end.code, ExitCode::kOk) << call << ": " << absl::StatusCodeToString(code) << end.status;
      EXPECT_EQ(life.coordinator.head(), Version(3));
    }
  }
}

TEST(StatusMatrixTest, APullThatWasEndedForACommandThatIsFollowedAlreadyIsBegunAgain) {
  Life life;
  life.coordinator.Fail("Pull", {.status = absl::CancelledError("ended for an order")});
  const WorkerEnd end = life.Run();
  EXPECT_EQ(end.code, ExitCode::kOk) << end.status;
  EXPECT_EQ(life.coordinator.head(), Version(3));
}

WorkerEnd RunWith(Life& life, Duration give_up_after) {
  WorkerOptions options{.join = TestJoin()};
  options.retry_policy.give_up_after = give_up_after;
  WorkerDeps deps{.data = &life.coordinator,
                  .control = &life.control,
                  .clock = &life.clock,
                  .sleeper = &life.sleeper,
                  .observer = &life.observer,
                  .log = Logger(),
                  .make_replica = [](const JoinedRun&) -> absl::StatusOr<std::unique_ptr<Replica>> {
                    return std::make_unique<FakeReplica>(5.0F);
                  }};
  life.coordinator.grant_seed = true;
  return Worker(options, deps).Run();
}

TEST(GivingUpTest, WhatNeverWorkedAndLooksPermanentEndsAfterAMinute) {
  Life life;
  const absl::Status wrong_ca = MarkPermanent(absl::UnavailableError("signed by another CA"));
  for (int i = 0; i < 90; ++i) life.coordinator.Fail("Join", {.status = wrong_ca});
  const MonoTime begin = life.clock.Now();
  const WorkerEnd end = RunWith(life, Seconds(60));
  EXPECT_EQ(end.code, ExitCode::kUnavailable);
  EXPECT_NE(end.status.message().find("signed by another CA"), std::string::npos) << end.status;
  EXPECT_NE(end.status.message().find("--wait-forever"), std::string::npos) << end.status;
  EXPECT_GE(life.clock.Now() - begin, Seconds(60));
  EXPECT_LE(life.clock.Now() - begin, Seconds(66));
}

TEST(GivingUpTest, ACoordinatorThatMayYetComeIsWaitedFor) {
  Life life;
  for (int i = 0; i < 90; ++i) {
    // Refused now and then: that is a machine on which it will be started.
    const absl::Status rejected = absl::UnavailableError("connection refused");
    life.coordinator.Fail("Join", {.status = i % 10 == 9 ? rejected : MarkPermanent(rejected)});
  }
  const WorkerEnd end = RunWith(life, Seconds(60));
  EXPECT_EQ(end.code, ExitCode::kOk) << end.status;
}

TEST(GivingUpTest, WhoWasReachedOnceIsWaitedFor) {
  Life life;
  life.coordinator.Fail("Join", {});
  const absl::Status odd = MarkPermanent(absl::UnavailableError("another certificate"));
  for (int i = 0; i < 90; ++i) life.coordinator.Fail("Join", {.status = odd});
  const WorkerEnd end = RunWith(life, Seconds(60));
  EXPECT_EQ(end.code, ExitCode::kOk) << end.status;
}

}  // namespace
}  // namespace atl

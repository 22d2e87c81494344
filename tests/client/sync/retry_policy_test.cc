#include "client/sync/retry_policy.h"

#include <algorithm>

#include "client/sync/rejection.h"
#include "common/status_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/sync/harness.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

size_t Lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(RetryPolicyTest, SaysSoAtOnceThenEveryTenSecondsThenThatItIsOver) {
  Harness h;
  const absl::Status error = absl::UnavailableError("nobody there");
  const MonoTime begin = h.clock.Now();
  ASSERT_TRUE(h.retry_policy.Pause(error, "to join"));
  EXPECT_EQ(Lines(h.log.str()), 1u);
  EXPECT_THAT(h.worker_status.progress().waiting_for, HasSubstr("to join: nobody there"));
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(h.retry_policy.Pause(error, "to join"));
  const double seconds = ToSeconds(h.clock.Now() - begin);
  EXPECT_GT(seconds, 60);
  EXPECT_LE(static_cast<double>(Lines(h.log.str())), seconds / 10 + 1);
  EXPECT_GE(Lines(h.log.str()), 3u);
  h.retry_policy.Over();
  EXPECT_THAT(h.log.str(), HasSubstr("answers again"));
  EXPECT_EQ(h.worker_status.progress().waiting_for, "");
  EXPECT_NEAR(h.time.spent()[TimeUse::kWait], seconds, 1e-6);
}

TEST(RetryPolicyTest, SaysWhenItWillGiveUpOnlyWhileItWould) {
  Harness h;
  RetryPolicy retry_policy({.give_up_after = Seconds(60)}, 1, h.context);
  const absl::Status error = absl::UnavailableError("nobody there");
  const absl::Status permanent = MarkPermanent(absl::UnimplementedError("the admin port"));
  EXPECT_FALSE(retry_policy.GivesUp(error));
  ASSERT_TRUE(retry_policy.Pause(error, "to join"));
  EXPECT_THAT(h.log.str(), AllOf(HasSubstr("will keep trying"), Not(HasSubstr("gives_up_in"))));
  h.log.str("");
  while (!retry_policy.GivesUp(permanent)) ASSERT_TRUE(retry_policy.Pause(permanent, "to join"));
  EXPECT_GE(Lines(h.log.str()), 3u);
  EXPECT_THAT(h.log.str(), AllOf(HasSubstr("looks permanent"), HasSubstr("gives_up_in"),
                                 Not(HasSubstr("will keep trying"))));
}

TEST(RetryPolicyTest, WhatTheWorkerCancelsItselfIsNoAnswer) {
  Harness h;
  h.Start();
  h.coordinator.Fail("Pull", {.status = absl::UnavailableError("away")});
  h.coordinator.CancelPulls();
  const auto pulled = h.connection.Pull(h.session.info().member, {}, {});
  EXPECT_TRUE(absl::IsCancelled(pulled.status())) << pulled.status();
  EXPECT_THAT(h.log.str(), AllOf(HasSubstr("will keep trying"), Not(HasSubstr("answers again"))));
}

TEST(RetryPolicyTest, BacksOffUpToABound) {
  Harness h;
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(h.retry_policy.Pause(absl::UnavailableError("x"), "to join"));
  for (const Duration pause : h.observer.pauses) EXPECT_LE(pause, Seconds(5));
  EXPECT_LE(h.observer.pauses.front(), Seconds(0.2));
  EXPECT_GT(*std::max_element(h.observer.pauses.begin(), h.observer.pauses.end()), Seconds(2));
}

TEST(RetryPolicyTest, HonoursTheCoordinatorsDelay) {
  Harness h;
  const absl::Status error =
      WithDetail(absl::ResourceExhaustedError("full"),
                 {.reason = "STORAGE_FULL", .metadata = {}, .retry_after = Seconds(7)});
  ASSERT_TRUE(h.retry_policy.Pause(error, "to push"));
  EXPECT_GE(h.sleeper.slept.at(0), Seconds(7));
}

TEST(RetryPolicyTest, GivesUpWhenTheWorkerStops) {
  Harness h;
  FakeSleeper impatient(&h.clock, 0);
  WorkerContext context = h.context;
  context.sleeper = &impatient;
  RetryPolicy retry_policy(RetryPolicyOptions{}, 1, context);
  EXPECT_FALSE(retry_policy.Pause(absl::UnavailableError("x"), "to join"));
}

}  // namespace
}  // namespace atl

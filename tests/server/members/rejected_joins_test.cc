#include "server/members/rejected_joins.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rejection.h"
#include "tests/server/test_run.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

MonoTime At(double seconds) { return MonoTime(Seconds(seconds)); }

const absl::Status kFull = absl::ResourceExhaustedError("all 2 parts are in use");
const absl::Status kTaken = Reject(RejectionReason::kNameTaken, "another live worker has the name");

TEST(RejectedJoins, SayWhoWhyAndSinceWhen) {
  RejectedJoins rejected;
  EXPECT_TRUE(rejected.Note("w2", "10.0.0.2", kFull, At(100)));
  EXPECT_FALSE(rejected.Note("w2", "10.0.0.2", kFull, At(105))) << "no news";
  EXPECT_TRUE(rejected.Note("w2", "10.0.0.3", kTaken, At(107))) << "another reason";
  EXPECT_TRUE(rejected.Note("Not A Name", "10.0.0.4", kFull, At(108)));
  const auto views = rejected.Views(At(110));
  ASSERT_EQ(views.size(), 2u);
  EXPECT_EQ(views[0].worker, "w2");
  EXPECT_EQ(views[0].address, "10.0.0.3");
  EXPECT_EQ(views[0].reason, "NAME_TAKEN");
  EXPECT_THAT(views[0].message, HasSubstr("another live worker"));
  EXPECT_DOUBLE_EQ(views[0].since_s, 10);
  EXPECT_DOUBLE_EQ(views[0].last_s, 3);
  EXPECT_EQ(views[0].attempts, 3u);
  EXPECT_EQ(views[1].worker, "");
  EXPECT_EQ(views[1].reason, "RESOURCE_EXHAUSTED");
  rejected.Joined("w2");
  EXPECT_EQ(rejected.Views(At(110)).size(), 1u);
  EXPECT_EQ(rejected.total(), 4u);
  EXPECT_TRUE(rejected.Views(At(108) + RejectedJoins::kForgetAfter).empty());
}

TEST(RejectedJoins, AnUnbannedWorkerIsRejectedNoMore) {
  RejectedJoins rejected;
  rejected.Note("w2", "10.0.0.2", Reject(RejectionReason::kBanned, "the name is banned"), At(1));
  rejected.Note("w3", "10.0.0.3", kTaken, At(1));
  rejected.Unbanned("w2");
  rejected.Unbanned("w3");
  ASSERT_EQ(rejected.Views(At(2)).size(), 1u);
  EXPECT_EQ(rejected.Views(At(2))[0].worker, "w3") << "another reason, which has not ended";
}

TEST(RejectedJoins, StrangersNeitherFillTheListNorTheLog) {
  RejectedJoins rejected;
  for (int i = 0; i < 3; ++i) rejected.Note("w2", "10.0.0.2", kFull, At(i));
  int told = 0;
  for (int i = 0; i < 10000; ++i) {
    const std::string address = "10.1." + std::to_string(i / 200 % 250) + "." + std::to_string(i % 200);
    told += rejected.Note("stranger-" + std::to_string(i), address, kTaken, At(3 + 0.001 * i)) ? 1 : 0;
  }
  EXPECT_LE(told, static_cast<int>(RejectedJoins::kEventBurst) + 1);
  const auto views = rejected.Views(At(20));
  EXPECT_EQ(views.size(), RejectedJoins::kMost);
  EXPECT_EQ(views[0].worker, "w2") << "it goes on trying, and stays";
  EXPECT_EQ(rejected.total(), 10003u);
}

TEST(RejectedJoins, OneAddressHasItsShare) {
  RejectedJoins rejected;
  for (int i = 0; i < 200; ++i) rejected.Note("s" + std::to_string(i), "10.0.0.9", kTaken, At(i));
  EXPECT_EQ(rejected.Views(At(200)).size(), RejectedJoins::kMostPerAddress);
}

TEST(RejectedJoins, CountsTheAttemptsOfACrowdBehindOneAddress) {
  RejectedJoins rejected;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 60; ++i)
      rejected.Note("w" + std::to_string(i), "10.0.0.9", kFull, At(60 * round + i));
  }
  const auto views = rejected.Views(At(180));
  ASSERT_EQ(views.size(), 60u);
  for (const RejectedJoinView& view : views) EXPECT_EQ(view.attempts, 3u) << view.worker;
}

TEST(RejectedJoins, AreInTheStatusUntilTheWorkerIsIn) {
  CoordinatorOptions options = SmallRun();
  options.run.data.partitions = 2;
  TestRun run(options);
  EventCatcher events(&run.coordinator());
  const MemberRef a = run.Join("a");
  run.Join("b");
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(run.TryJoin("c").ok());
  const StatusView status = run.coordinator().GetStatus(0);
  ASSERT_EQ(status.refused_joins.size(), 1u);
  EXPECT_EQ(status.refused_joins[0].worker, "c");
  EXPECT_EQ(status.refused_joins[0].attempts, 3u);
  EXPECT_THAT(status.refused_joins[0].message, HasSubstr("2 parts of the shared data"));
  EXPECT_EQ(status.joins_refused, 3u);
  EXPECT_EQ(events.WaitFor(EventKind::kJoinRefused)->worker, "c");
  ASSERT_TRUE(run.coordinator().Leave(a, "done").ok());
  run.Join("c");
  EXPECT_TRUE(run.coordinator().GetStatus(0).refused_joins.empty());
  size_t told = 0;
  for (const EventView& event : events.events()) told += event.kind == EventKind::kJoinRefused ? 1 : 0;
  EXPECT_EQ(told, 1u);
}

}  // namespace
}  // namespace atl

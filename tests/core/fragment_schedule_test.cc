#include "core/fragment_schedule.h"

#include <functional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Inner steps at which a fragment is pushed, when `answered_after` says how many steps later its answer
/// comes and `waited` how many of them were the others'.
struct Simulation {
  FragmentSchedule schedule;
  uint32_t fragments;
  std::function<uint64_t(uint32_t, uint64_t)> answered_after = [](uint32_t, uint64_t) { return 0; };
  std::function<uint64_t(uint32_t, uint64_t)> waited = [](uint32_t, uint64_t) { return 0; };
  std::vector<std::vector<uint64_t>> pushed{fragments};
  std::vector<std::vector<uint64_t>> used{fragments};
  std::vector<std::vector<uint64_t>> skipped{fragments};
  std::vector<uint64_t> answer_at = std::vector<uint64_t>(fragments, 0);
  std::vector<bool> unanswered = std::vector<bool>(fragments, false);

  void Run(uint64_t steps) {
    for (uint64_t i = 0; i < steps; ++i) {
      schedule.StepTaken();
      for (uint32_t p = 0; p < fragments; ++p) Push(p);
      for (uint32_t p = 0; p < fragments; ++p) Use(p);
    }
  }
  void Push(uint32_t p) {
    if (!schedule.Due(p)) return;
    if (unanswered[p]) {
      if (!schedule.TooLate(p)) return;
      schedule.Skipped(p);
      skipped[p].push_back(schedule.now());
      return;
    }
    schedule.Pushed(p);
    pushed[p].push_back(schedule.now());
    answer_at[p] = schedule.now() + answered_after(p, schedule.now());
    unanswered[p] = true;
  }
  void Use(uint32_t p) {
    if (!unanswered[p] || schedule.now() < answer_at[p] || !schedule.Usable(p)) return;
    schedule.Used(p, waited(p, schedule.now()));
    used[p].push_back(schedule.now());
    unanswered[p] = false;
  }
};

TEST(FragmentSchedule, TorchftsTwoFragmentsWithoutDelay) {
  Simulation run{.schedule = FragmentSchedule(6, 2, 0), .fragments = 2};
  run.Run(18);
  EXPECT_THAT(run.pushed[0], ElementsAre(3, 9, 15));
  EXPECT_THAT(run.used[0], ElementsAre(3, 9, 15));
  EXPECT_THAT(run.pushed[1], ElementsAre(6, 12, 18));
}

TEST(FragmentSchedule, TorchftsTwoFragmentsWithADelayOfOne) {
  Simulation run{.schedule = FragmentSchedule(6, 2, 1), .fragments = 2};
  run.Run(18);
  EXPECT_THAT(run.pushed[0], ElementsAre(2, 8, 14));
  EXPECT_THAT(run.used[0], ElementsAre(3, 9, 15));
  EXPECT_THAT(run.pushed[1], ElementsAre(5, 11, 17));
}

TEST(FragmentSchedule, EveryFragmentIsPushedOnceInAnyCycle) {
  for (const uint32_t steps : {4u, 7u, 50u, 101u}) {
    for (const uint32_t fragments : {1u, 2u, 3u, 4u}) {
      for (const uint32_t delay : {0u, 1u, 3u}) {
        Simulation run{.schedule = FragmentSchedule(steps, fragments, delay), .fragments = fragments};
        run.Run(uint64_t{10} * steps);
        for (uint32_t p = 0; p < fragments; ++p) {
          ASSERT_GE(run.pushed[p].size(), 9u) << steps << " " << fragments << " " << delay;
          EXPECT_GE(run.pushed[p][0], 1u);
          for (size_t i = 1; i < run.pushed[p].size(); ++i) {
            EXPECT_EQ(run.pushed[p][i] - run.pushed[p][i - 1], steps);
          }
          for (size_t i = 0; i < run.used[p].size(); ++i) {
            EXPECT_EQ(run.used[p][i], run.pushed[p][i] + delay);
          }
        }
      }
    }
  }
}

TEST(FragmentSchedule, ADelayLongerThanTheWayToTheFirstPushBeginsACycleLater) {
  Simulation run{.schedule = FragmentSchedule(12, 4, 5), .fragments = 4};
  run.Run(24);
  EXPECT_THAT(run.pushed[0], ElementsAre(10, 22));
  EXPECT_THAT(run.pushed[1], ElementsAre(1, 13));
  EXPECT_THAT(run.pushed[3], ElementsAre(7, 19));
}

TEST(FragmentSchedule, ALateAnswerIsUsedWhenItComesAndMovesNothing) {
  Simulation run{.schedule = FragmentSchedule(10, 1, 2), .fragments = 1};
  run.answered_after = [](uint32_t, uint64_t now) { return now == 8 ? 6 : 1; };
  run.Run(40);
  EXPECT_THAT(run.pushed[0], ElementsAre(8, 18, 28, 38));
  EXPECT_THAT(run.used[0], ElementsAre(14, 20, 30, 40));
  EXPECT_THAT(run.skipped[0], IsEmpty());
}

TEST(FragmentSchedule, WhatIsUnansweredWhenItIsDueIsPushedWhenItIsAnswered) {
  Simulation run{.schedule = FragmentSchedule(10, 1, 2), .fragments = 1};
  run.answered_after = [](uint32_t, uint64_t now) { return now == 8 ? 13 : 1; };
  run.Run(40);
  EXPECT_THAT(run.pushed[0], ElementsAre(8, 22, 28, 38)) << "one late push moves nothing";
  EXPECT_THAT(run.skipped[0], IsEmpty());
  EXPECT_THAT(run.used[0], ElementsAre(21, 24, 30, 40));
}

TEST(FragmentSchedule, WhatIsUnansweredForHalfACycleIsPassedOver) {
  Simulation run{.schedule = FragmentSchedule(10, 1, 2), .fragments = 1};
  run.answered_after = [](uint32_t, uint64_t now) { return now == 8 ? 15 : 1; };
  run.Run(40);
  EXPECT_THAT(run.pushed[0], ElementsAre(8, 28, 38));
  EXPECT_THAT(run.skipped[0], ElementsAre(23));
  EXPECT_THAT(run.used[0], ElementsAre(23, 30, 40));
}

TEST(FragmentSchedule, WhoWasKeptWaitingOnceMovesNothing) {
  Simulation run{.schedule = FragmentSchedule(10, 2, 1), .fragments = 2};
  run.answered_after = [](uint32_t, uint64_t now) { return now == 14 ? 6 : 1; };
  run.waited = [](uint32_t, uint64_t now) { return now == 20 ? 100 : 0; };
  run.Run(60);
  EXPECT_THAT(run.pushed[0], ElementsAre(4, 14, 24, 34, 44, 54));
  EXPECT_THAT(run.pushed[1], ElementsAre(9, 19, 29, 39, 49, 59));
}

TEST(FragmentSchedule, WhoIsEarlierThanTheOthersFallsIntoStepWithThem) {
  // The others push 4 steps later: this worker's answers come then, and all that time it waited for them.
  Simulation run{.schedule = FragmentSchedule(10, 2, 1), .fragments = 2};
  const auto others = [](uint32_t p, uint64_t now) {
    uint64_t at = (p == 0 ? 4 : 9) + 4;
    while (at < now) at += 10;
    return at - now;
  };
  run.answered_after = others;
  run.waited = [&](uint32_t, uint64_t) { return 100; };
  run.Run(60);
  // Four times late by 3, then never again: what was in flight when it moved does not shift it twice.
  EXPECT_THAT(run.pushed[0], ElementsAre(4, 14, 27, 37, 47, 57));
  EXPECT_THAT(run.pushed[1], ElementsAre(9, 19, 32, 42, 52));
}

TEST(FragmentSchedule, AWorkerOfTwiceTheSpeedTakesTwiceTheSteps) {
  Simulation run{.schedule = FragmentSchedule(10, 1, 1), .fragments = 1};
  // The others push every 20 of this worker's steps.
  run.answered_after = [](uint32_t, uint64_t now) { return (now + 19) / 20 * 20 - now; };
  run.waited = [](uint32_t, uint64_t) { return 100; };
  run.Run(300);
  ASSERT_EQ(run.used[0].size(), 15u);
  for (size_t i = 0; i < 15; ++i) EXPECT_EQ(run.used[0][i], 20 * (i + 1));
  // Found to be late four times, it pushes in the second half of its cycles.
  for (size_t i = 6; i < 15; ++i) EXPECT_GE(run.pushed[0][i], run.used[0][i - 1] + 9) << i;
}

TEST(FragmentSchedule, WhoCameTooLatePushesWithTheOthersNextTime) {
  FragmentSchedule schedule(10, 1, 2);
  for (int i = 0; i < 8; ++i) schedule.StepTaken();
  ASSERT_TRUE(schedule.Due(0));
  schedule.Pushed(0);
  schedule.StepTaken();
  schedule.Used(0, 0);
  schedule.CameLate(0, 3);  // the others used the head three steps ago, and push eight after that
  EXPECT_EQ(schedule.DueIn(0), 5);
  schedule.CameLate(0, 1000);
  EXPECT_EQ(schedule.DueIn(0), 1);
}

TEST(FragmentSchedule, AnotherNumberOfStepsBeginsWithFragmentZero) {
  Simulation run{.schedule = FragmentSchedule(8, 2, 0), .fragments = 2};
  run.Run(5);
  run.schedule.SetSteps(20);
  run.Run(60);
  EXPECT_THAT(run.pushed[0], ElementsAre(4, 12, 32, 52));
  EXPECT_THAT(run.pushed[1], ElementsAre(8, 22, 42, 62));
  run.schedule.SetSteps(1);  // no cycle is shorter than its fragments
  run.Run(20);
  EXPECT_EQ(run.schedule.steps(), 2u);
}

}  // namespace
}  // namespace atl

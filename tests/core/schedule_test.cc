#include "core/schedule.h"

#include <vector>

#include "gtest/gtest.h"

namespace atl {
namespace {

RunOptions SmallRun() {
  RunOptions run;
  run.workers = 4;
  run.rounds = 20;
  run.inner.steps = 50;
  run.inner.learning_rate = 1e-3;
  run.inner.warmup_steps = 100;
  run.inner.batch = 12;
  run.model.gpt().context = 64;
  return run;
}

struct Point {
  double position;
  double rate;
};

TEST(Schedule, WarmupThenCosineOverTheWholeRun) {
  // 100 steps of warmup, 1,000 in all, 1e-3 to 1e-4: floor + (1 + cos(pi x)) / 2 * 9e-4 at x = 0, 1/4, 1/2,
  // 3/4, 1.
  const Point points[] = {{0, 1e-5},
                          {49, 5e-4},
                          {98.5, 9.95e-4},
                          {99, 1e-3},
                          {99.5, 1e-3},
                          {100, 1e-3},
                          {325, 8.681980515339464e-4},
                          {550, 5.5e-4},
                          {775, 2.318019484660536e-4},
                          {1000, 1e-4},
                          {5000, 1e-4}};
  for (const Point& point : points)
    EXPECT_NEAR(LearningRateAt(SmallRun(), point.position), point.rate, 1e-12) << point.position;
}

TEST(Schedule, AnExtensionGoesOnFromTheRateThatIsReached) {
  const RunOptions run = SmallRun();
  const RunOptions extended = Extended(run, 20, 550);
  EXPECT_EQ(extended.rounds, 40u);
  EXPECT_EQ(extended.total_steps(), 2000u);
  EXPECT_EQ(extended.extension.steps_added, 1000u);
  // From 5.5e-4 at step 550 to 1e-4 at step 2,000: floor + (1 + cos(pi x)) / 2 * 4.5e-4.
  EXPECT_NEAR(LearningRateAt(extended, 550), 5.5e-4, 1e-12);
  EXPECT_NEAR(LearningRateAt(extended, 912.5), 4.84099025766973e-4, 1e-12);
  EXPECT_NEAR(LearningRateAt(extended, 1275), 3.25e-4, 1e-12);
  EXPECT_NEAR(LearningRateAt(extended, 2000), 1e-4, 1e-12);
  EXPECT_NEAR(LearningRateAt(extended, 325), 8.681980515339464e-4, 1e-12) << "before it, as it was planned";
  EXPECT_NEAR(LearningRateAt(extended, 49), 5e-4, 1e-12) << "and the warmup";
}

TEST(Schedule, NoExtensionEverRaisesTheRate) {
  RunOptions run = SmallRun();
  double position = 0;
  std::vector<double> rates;
  const auto train = [&](double steps) {
    for (const double end = position + steps; position < end; ++position)
      rates.push_back(LearningRateAt(run, position));
  };
  for (const double steps : {50.0, 400.0, 300.0, 1000.0, 10.0, 2000.0}) {
    train(steps);
    run = Extended(run, 7, position);
  }
  train(3000);
  for (size_t i = 100; i + 1 < rates.size(); ++i) ASSERT_LE(rates[i + 1], rates[i] * (1 + 1e-12)) << i;
  EXPECT_DOUBLE_EQ(rates.back(), 1e-4);
}

TEST(Schedule, AFinishedRunGoesOnAtTheFinalRate) {
  const RunOptions extended = Extended(SmallRun(), 20, 1010);
  for (const double step : {1010.0, 1500.0, 2000.0}) EXPECT_DOUBLE_EQ(LearningRateAt(extended, step), 1e-4);
}

TEST(Schedule, BeforeTheDecayAnExtensionOnlyMovesTheEnd) {
  const RunOptions extended = Extended(SmallRun(), 20, 100);
  EXPECT_EQ(extended.extension.at_step, 0);
  RunOptions planned = SmallRun();
  planned.rounds = 40;
  for (const double step : {0.0, 99.0, 500.0, 1999.0}) {
    EXPECT_DOUBLE_EQ(LearningRateAt(extended, step), LearningRateAt(planned, step));
  }
}

TEST(Schedule, ABudgetThatIsNoWholeNumberOfRoundsEndsTheDecay) {
  RunOptions run = SmallRun();
  run.inner.steps = 300;
  run.planned_tokens = run.total_tokens() / 6;
  run.rounds = 4;
  EXPECT_EQ(run.total_steps(), 1000u);
  EXPECT_EQ(run.total_tokens(), SmallRun().total_tokens());
  for (const double step : {0.0, 150.0, 550.0, 1000.0}) {
    EXPECT_DOUBLE_EQ(LearningRateAt(run, step), LearningRateAt(SmallRun(), step)) << step;
  }
  EXPECT_EQ(Extended(run, 2, 550).total_steps(), 1600u);
}

TEST(Schedule, WithoutWarmupItStartsAtThePeak) {
  RunOptions run = SmallRun();
  run.inner.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(LearningRateAt(run, 0), 1e-3);
  run.inner.warmup_steps = 2000;  // longer than the run: a ramp that never ends
  EXPECT_DOUBLE_EQ(LearningRateAt(run, 999), 5e-4);
}

TEST(Schedule, IsCountedInTokensOfTheRun) {
  const RunOptions run = SmallRun();
  EXPECT_EQ(run.tokens_per_step(), 768u);
  EXPECT_DOUBLE_EQ(SchedulePosition(run, 0), 0);
  // All four planned workers: a step of each moves the schedule by one step.
  const uint64_t committed = 50ull * 768 * 4;
  EXPECT_DOUBLE_EQ(SchedulePosition(run, TokensAtStep(run, committed, 0, 4)), 50);
  EXPECT_DOUBLE_EQ(SchedulePosition(run, TokensAtStep(run, committed, 7, 4)), 57);
  // Half of the workers: half the tokens, half the pace, and the round's start is where the tokens are.
  EXPECT_DOUBLE_EQ(SchedulePosition(run, TokensAtStep(run, committed, 8, 2)), 54);
  EXPECT_DOUBLE_EQ(SchedulePosition(run, static_cast<double>(run.total_tokens())), 1000);
}

}  // namespace
}  // namespace atl

#include "cli/overlap_forecast.h"

#include <gtest/gtest.h>

#include <utility>

namespace atl {
namespace {

// What docs/reference/benchmarks.md has measured: 10 M parameters at 4 bits in 4 fragments, 2 workers behind
// one link of 20 ms each way, 50 timed steps of 40 ms. Slow start, as `plan` takes it.
OverlappedTraffic Measured(double megabits, double start_s) {
  return {.steps = 50,
          .fragments = 4,
          .delay_steps = 20,
          .max_in_flight = 4,
          .workers = 2,
          .step_s = 0.0405,
          .push_bytes = 1.29e6,
          .pull_bytes = 1.29e6,
          .worker_rate = megabits * 1e6 / 8,
          .coordinator_rate = megabits * 1e6 / 8,
          .latency_s = 0.04,
          .push_start_s = start_s,
          .pull_start_s = start_s,
          .merge_s = 0.008};
}

TEST(OverlapForecast, AgreesWithMeasuredRuns) {
  EXPECT_NEAR(ForecastSecondsBetweenPushes(Measured(20, 0.06)), 5.25, 0.525);
  EXPECT_NEAR(ForecastSecondsBetweenPushes(Measured(30, 0.08)), 4.04, 0.71);  // the page says why not nearer
  EXPECT_NEAR(ForecastSecondsBetweenPushes(Measured(100, 0.15)), 2.05, 0.05);
}

// The runs of the test plan_measured, at other bandwidths: twice as many bytes down as up, in 2 fragments.
TEST(OverlapForecast, PullsThatFollowEachOtherFillTheLink) {
  OverlappedTraffic traffic{.steps = 24,
                            .fragments = 2,
                            .delay_steps = 10,
                            .max_in_flight = 2,
                            .workers = 2,
                            .step_s = 0.0223,
                            .push_bytes = 0.475e6,
                            .pull_bytes = 0.947e6,
                            .latency_s = 0.02,
                            .push_start_s = 0.03,
                            .pull_start_s = 0.03,
                            .merge_s = 0.007};
  constexpr std::pair<double, double> kMeasured[] = {
      {12, 2.81}, {16, 2.01}, {20, 1.76}, {30, 1.17}, {40, 0.88}};
  for (const auto& [megabits, seconds] : kMeasured) {
    traffic.worker_rate = traffic.coordinator_rate = megabits * 1e6 / 8;
    EXPECT_NEAR(ForecastSecondsBetweenPushes(traffic), seconds, 0.1 * seconds) << megabits;
  }
}

TEST(OverlapForecast, IsTheCycleWhereExchangesFitAndTheLinkWhereTheyNeverDo) {
  OverlappedTraffic traffic = Measured(1000, 0.2);
  EXPECT_NEAR(ForecastSecondsBetweenPushes(traffic), 50 * 0.0405, 0.01);
  traffic = Measured(1, 0);
  const double on_the_link = 2 * 4 * 8 * 1.29e6 / 1e6;
  EXPECT_GT(ForecastSecondsBetweenPushes(traffic), on_the_link);
  EXPECT_LT(ForecastSecondsBetweenPushes(traffic), 1.1 * on_the_link);
}

TEST(OverlapForecast, NeverGetsShorterWithAThinnerLink) {
  double before = 0;
  for (const double megabits : {200, 100, 40, 20, 10, 5, 2}) {
    const double now = ForecastSecondsBetweenPushes(Measured(megabits, 0.05));
    EXPECT_GE(now, 0.97 * before) << megabits;
    before = now;
  }
}

TEST(OverlapForecast, OneFragmentOfOneWorkerWaitsForItsOwnAnswer) {
  OverlappedTraffic traffic = Measured(20, 0);
  traffic.fragments = 1;
  traffic.workers = 1;
  traffic.max_in_flight = 1;
  // There and back take 1.1 s, less than a cycle, and more than the delay.
  EXPECT_NEAR(ForecastSecondsBetweenPushes(traffic), 50 * 0.0405, 0.01);
}

}  // namespace
}  // namespace atl

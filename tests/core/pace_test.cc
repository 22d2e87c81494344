#include "core/pace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace atl {
namespace {

std::vector<uint32_t> Plan(const std::vector<double>& rates, uint32_t steps) {
  std::vector<uint32_t> plan;
  for (const double rate : rates) plan.push_back(PacedSteps(rate, rates, steps));
  return plan;
}

double Mean(const std::vector<uint32_t>& steps) {
  return std::accumulate(steps.begin(), steps.end(), 0.0) / static_cast<double>(steps.size());
}

TEST(Pace, ThoseOfDifferentSpeedArriveTogether) {
  const std::vector<double> rates = {1, 2, 3};
  const std::vector<uint32_t> plan = Plan(rates, 100);
  EXPECT_EQ(plan, (std::vector<uint32_t>{50, 100, 150})) << "50 s each; the mean is 100";
}

TEST(Pace, TheMeanIsKeptWhereBoundsBite) {
  // Unbounded, the slow one would do 10 of 100 steps: it is held at 25, and the others give way.
  const std::vector<double> rates = {0.1, 1, 1, 1.9};
  const std::vector<uint32_t> plan = Plan(rates, 100);
  EXPECT_EQ(plan[0], 25);
  EXPECT_NEAR(Mean(plan), 100, 1);
  EXPECT_NEAR(plan[3] / 1.9, plan[1], 1) << "the others still arrive together";
  const std::vector<double> one_giant = {1, 1, 1, 1, 1, 1, 1, 1000};
  const std::vector<uint32_t> giant = Plan(one_giant, 100);
  EXPECT_EQ(giant[7], 400) << "never above four times H";
  EXPECT_NEAR(Mean(giant), 100, 1);
}

TEST(Pace, WhatIsNotKnownGetsTheRunsOwn) {
  EXPECT_EQ(PacedSteps(0, std::vector<double>{0, 5}, 40), 40);
  EXPECT_EQ(PacedSteps(5, std::vector<double>{0, 5}, 40), 40) << "alone with a known rate";
  EXPECT_EQ(PacedSteps(0, {}, 40), 40);
  EXPECT_EQ(Plan({1, 3, 0}, 40), (std::vector<uint32_t>{20, 60, 40}));
}

TEST(Pace, ThereIsAlwaysAStep) {
  for (const uint32_t steps : {1U, 2U, 3U}) {
    for (const uint32_t given : Plan({0.001, 1, 1000}, steps)) {
      EXPECT_GE(given, 1);
      EXPECT_LE(given, MostPacedSteps(steps));
    }
  }
}

TEST(Pace, TransfersArePartOfWhatIsMeasuredAndThePlanSettlesAllTheSame) {
  // Two workers of equal compute; one spends 30 s of every round on its network. Plans made from the measured
  // rates settle where both arrive at once.
  const std::vector<double> step_seconds = {0.5, 0.5};
  const std::vector<double> transfer = {0, 30};
  std::vector<PaceEstimate> estimates(2);
  std::vector<uint32_t> plan = {100, 100};
  for (int round = 0; round < 40; ++round) {
    std::vector<double> rates;
    for (size_t i = 0; i < 2; ++i) {
      estimates[i].Add(plan[i], Seconds(plan[i] * step_seconds[i] + transfer[i]));
      rates.push_back(estimates[i].steps_per_second());
    }
    plan = Plan(rates, 100);
  }
  EXPECT_NEAR(plan[0] * 0.5, plan[1] * 0.5 + 30, 1.0);
  EXPECT_NEAR(Mean(plan), 100, 1);
}

TEST(Pace, OneFreezeCostsLittle) {
  PaceEstimate estimate;
  EXPECT_EQ(estimate.steps_per_second(), 0);
  estimate.Add(100, Seconds(10));
  estimate.Add(100, Seconds(100000));
  EXPECT_NEAR(estimate.steps_per_second(), 7, 0.1) << "0.7 of 10";
  estimate.Add(0, Seconds(1));
  estimate.Add(5, Seconds(0));
  EXPECT_NEAR(estimate.steps_per_second(), 7, 0.1) << "neither says anything";
}

}  // namespace
}  // namespace atl

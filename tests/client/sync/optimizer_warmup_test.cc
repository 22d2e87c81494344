#include "client/sync/optimizer_warmup.h"

#include "gtest/gtest.h"

namespace atl {
namespace {

InnerOptions Adam(double beta2, uint32_t steps) {
  InnerOptions inner;
  inner.beta2 = beta2;
  inner.steps = steps;
  return inner;
}

TEST(OptimizerWarmupTest, TwoOverOneMinusBeta2ButAtMostARound) {
  EXPECT_EQ(OptimizerWarmupSteps(Adam(0.95, 500)), 40u);
  EXPECT_EQ(OptimizerWarmupSteps(Adam(0.99, 500)), 200u);
  EXPECT_EQ(OptimizerWarmupSteps(Adam(0.999, 500)), 500u);
  InnerOptions sgd = Adam(0.95, 500);
  sgd.optimizer = InnerOptimizerKind::kSgd;
  EXPECT_EQ(OptimizerWarmupSteps(sgd), 0u);
}

TEST(OptimizerWarmupTest, RisesLinearlyAndStays) {
  OptimizerWarmup optimizer_warmup;
  EXPECT_TRUE(optimizer_warmup.cold());
  optimizer_warmup.Begin(4);
  EXPECT_FALSE(optimizer_warmup.cold());
  for (const double factor : {0.25, 0.5, 0.75, 1.0, 1.0, 1.0}) {
    EXPECT_DOUBLE_EQ(optimizer_warmup.factor(), factor);
    optimizer_warmup.StepTaken();
  }
}

TEST(OptimizerWarmupTest, GoesOnAfterARestart) {
  OptimizerWarmup optimizer_warmup;
  optimizer_warmup.Resume(4, 2);
  EXPECT_FALSE(optimizer_warmup.cold());
  EXPECT_DOUBLE_EQ(optimizer_warmup.factor(), 0.75);
  optimizer_warmup.Resume(0, 9);
  EXPECT_DOUBLE_EQ(optimizer_warmup.factor(), 1);
}

}  // namespace
}  // namespace atl

#include "worker/sync/rewarm.h"

#include "gtest/gtest.h"

namespace atoll {
namespace {

InnerOptions Adam(double beta2, uint32_t steps) {
  InnerOptions inner;
  inner.beta2 = beta2;
  inner.steps = steps;
  return inner;
}

TEST(RewarmTest, TwoOverOneMinusBeta2ButAtMostARound) {
  EXPECT_EQ(RewarmSteps(Adam(0.95, 500)), 40u);
  EXPECT_EQ(RewarmSteps(Adam(0.99, 500)), 200u);
  EXPECT_EQ(RewarmSteps(Adam(0.999, 500)), 500u);
  InnerOptions sgd = Adam(0.95, 500);
  sgd.optimizer = InnerOptimizerKind::kSgd;
  EXPECT_EQ(RewarmSteps(sgd), 0u);
}

TEST(RewarmTest, RisesLinearlyAndStays) {
  Rewarm rewarm;
  EXPECT_TRUE(rewarm.cold());
  rewarm.Begin(4);
  EXPECT_FALSE(rewarm.cold());
  for (const double factor : {0.25, 0.5, 0.75, 1.0, 1.0, 1.0}) {
    EXPECT_DOUBLE_EQ(rewarm.factor(), factor);
    rewarm.StepTaken();
  }
}

TEST(RewarmTest, GoesOnAfterARestart) {
  Rewarm rewarm;
  rewarm.Resume(4, 2);
  EXPECT_FALSE(rewarm.cold());
  EXPECT_DOUBLE_EQ(rewarm.factor(), 0.75);
  rewarm.Resume(0, 9);
  EXPECT_DOUBLE_EQ(rewarm.factor(), 1);
}

}  // namespace
}  // namespace atoll

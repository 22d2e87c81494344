#include "core/privacy.h"

#include <cmath>
#include <fstream>
#include <string>

#include "core/payload_stats.h"
#include "gtest/gtest.h"
#include "tests/paths.h"

namespace atl {
namespace {

struct Fixed final : GaussianSource {
  void AddTo(std::span<float> values, double deviation) override {
    for (float& value : values) value += static_cast<float>(deviation);
  }
};

TEST(Epsilon, IsThatOfAnIndependentComputationAndNeverBelowTheExactOne) {
  // tests/reference/privacy_reference.py
  std::ifstream golden(ATOLL_SOURCE_DIR "/tests/golden/core/privacy.txt");
  double sigma = 0, rounds = 0, delta = 0, by_renyi = 0, exact = 0;
  int cases = 0;
  for (; golden >> sigma >> rounds >> delta >> by_renyi >> exact; ++cases) {
    const double epsilon = EpsilonOf(rounds * GaussianRho(1, sigma), delta);
    EXPECT_NEAR(epsilon, by_renyi, 1e-9 * by_renyi) << sigma << " " << rounds << " " << delta;
    EXPECT_GE(epsilon, exact) << "a bound that does not hold";
    EXPECT_LT(epsilon, 1.13 * exact) << "a bound that is of no use";
  }
  EXPECT_EQ(cases, 40);
}

TEST(Epsilon, GrowsWithRhoAndFallsWithDelta) {
  EXPECT_EQ(EpsilonOf(0, 1e-5), 0);
  double before = 0;
  for (double rho = 1e-9; rho < 1e5; rho *= 3) {
    const double epsilon = EpsilonOf(rho, 1e-5);
    EXPECT_GE(epsilon, before) << rho;
    EXPECT_GE(EpsilonOf(rho, 1e-8), epsilon);
    before = epsilon;
  }
}

TEST(Privatise, ClipsToTheBoundAndLeavesTheSmallAlone) {
  std::vector<float> large(5000, 0.5F);
  Privatise(1.0, 0, large, nullptr);
  EXPECT_LE(VectorNorm(large), 1.0) << "rounding must not leave it above the bound";
  EXPECT_NEAR(VectorNorm(large), 1.0, 1e-5);
  std::vector<float> small = {0.1F, -0.2F};
  Privatise(1.0, 0, small, nullptr);
  EXPECT_EQ(small, (std::vector<float>{0.1F, -0.2F}));
  Fixed noise;
  Privatise(1.0, 2.0, small, &noise);
  EXPECT_EQ(small, (std::vector<float>{2.1F, 1.8F}));
}

TEST(Privatise, FragmentsShareTheBound) {
  const PrivacyOptions options{.clip_norm = 6};
  EXPECT_DOUBLE_EQ(FragmentClipNorm(options, 1), 6);
  EXPECT_DOUBLE_EQ(FragmentClipNorm(options, 4), 3);
}

RoundRecord Round(const std::vector<WorkerName>& workers, std::vector<float> weights, double noise = 2) {
  RoundRecord record;
  record.noise_multiplier = noise;
  record.weights = std::move(weights);
  for (const WorkerName& worker : workers) record.contributions.push_back({.key = {.worker = worker}});
  return record;
}

TEST(PrivacyAccountant, AddsUpWhatEachWorkerReleased) {
  PrivacyAccountant accountant(1);
  for (int i = 0; i < 3; ++i) accountant.Note(Round({"a", "b"}, {0.5F, 0.5F}));
  accountant.Note(Round({"b"}, {1.0F}));
  EXPECT_DOUBLE_EQ(accountant.local_rho(), 4 / 8.0) << "b's four releases of 1 / (2 sigma^2)";
  // Three rounds with the noise of two, and one that is its own.
  EXPECT_DOUBLE_EQ(*accountant.published_rho(), 3 / 16.0 + 1 / 8.0);
}

TEST(PrivacyAccountant, TheHeavyOneIsTheLeastHidden) {
  PrivacyAccountant accountant(1);
  accountant.Note(Round({"a", "b"}, {0.75F, 0.25F}));
  EXPECT_DOUBLE_EQ(*accountant.published_rho(), 0.125 * 0.5625 / 0.625);
}

TEST(PrivacyAccountant, AddsTheWeightsOfAWorkerThatIsInAVersionTwice) {
  // a's late contribution and its own: sensitivity (0.25 + 0.5) C, noise of variance 0.375 sigma^2 C^2.
  PrivacyAccountant accountant(1);
  accountant.Note(Round({"a", "b", "a"}, {0.25F, 0.25F, 0.5F}));
  EXPECT_DOUBLE_EQ(*accountant.published_rho(), 0.125 * 0.75 * 0.75 / 0.375);
  EXPECT_DOUBLE_EQ(accountant.local_rho(), 2 * 0.125) << "each push has noise of its own";
}

TEST(PrivacyAccountant, CountsAFragmentAsItsShareOfARound) {
  PrivacyAccountant whole(1);
  PrivacyAccountant parts(4);
  whole.Note(Round({"a"}, {1}));
  for (int i = 0; i < 4; ++i) parts.Note(Round({"a"}, {1}));
  EXPECT_DOUBLE_EQ(whole.local_rho(), parts.local_rho());
}

TEST(PrivacyAccountant, KnowsNoBoundWhereThereIsNone) {
  PrivacyAccountant accountant(1);
  RoundRecord clipped = Round({"a", "b", "c"}, {0.5F, 0.25F, 0.25F});
  clipped.merge.method = MergeMethod::kCenteredClip;
  accountant.Note(clipped);
  EXPECT_FALSE(accountant.published_rho().has_value());
  EXPECT_DOUBLE_EQ(accountant.local_rho(), 0.125);
  EXPECT_FALSE(accountant.without_noise());
  accountant.Note(RoundRecord());  // a restore: no contributions
  EXPECT_FALSE(accountant.without_noise());
  accountant.Note(Round({"a"}, {1}, 0));
  EXPECT_TRUE(accountant.without_noise());
}

}  // namespace
}  // namespace atl

#include "worker/torch/head_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace atl {
namespace {

/// Of x and head.
std::vector<torch::Tensor> GradientsOf(const torch::Tensor& loss, const torch::Tensor& x,
                                       const torch::Tensor& head) {
  return torch::autograd::grad({loss * 3}, {x, head});
}

TEST(HeadLossTest, IsTheCrossEntropyOfTheVocabulary) {
  torch::manual_seed(4);
  for (const auto type : {torch::kFloat32, torch::kBFloat16}) {
    for (const int64_t vocabulary : {64, 65, 127, 200}) {
      const torch::Tensor x = torch::randn({9, 16}).to(type).requires_grad_(true);
      const torch::Tensor head = torch::randn({vocabulary, 16}).to(type).requires_grad_(true);
      const torch::Tensor targets = torch::randint(vocabulary, {9}, torch::kInt64);
      const torch::Tensor logits = torch::mm(x.to(torch::kFloat64), head.to(torch::kFloat64).t());
      const torch::Tensor expected = torch::nll_loss(torch::log_softmax(logits, 1), targets);
      const torch::Tensor found = HeadLoss(x, head, targets);
      const double tolerance = type == torch::kFloat32 ? 1e-5 : 5e-2;
      EXPECT_EQ(found.scalar_type(), torch::kFloat32);
      EXPECT_NEAR(found.item<double>(), expected.item<double>(), tolerance * expected.item<double>());
      const auto ours = GradientsOf(found, x, head), theirs = GradientsOf(expected, x, head);
      for (size_t i = 0; i < theirs.size(); ++i) {
        ASSERT_EQ(ours[i].sizes(), theirs[i].sizes());
        const torch::Tensor error = (ours[i] - theirs[i]).to(torch::kFloat64).norm();
        EXPECT_LT(error.item<double>(), tolerance * theirs[i].to(torch::kFloat64).norm().item<double>())
            << vocabulary << " " << i;
      }
    }
  }
}

// Rounded to bfloat16, the probability of the target is 1.
TEST(HeadLossTest, ATokenThatIsNearlyCertainStillHasAGradient) {
  const torch::Tensor x = torch::ones({1, 1}, torch::kBFloat16).requires_grad_(true);
  const torch::Tensor head = torch::tensor({{7.0}, {0.0}}).to(torch::kBFloat16).requires_grad_(true);
  const torch::Tensor targets = torch::zeros({1}, torch::kInt64);
  const torch::Tensor gradient = torch::autograd::grad({HeadLoss(x, head, targets)}, {head})[0];
  EXPECT_NEAR(gradient[0][0].item<double>(), -9.11e-4, 1e-5);
  EXPECT_NEAR(gradient[1][0].item<double>(), 9.11e-4, 1e-5);
}

TEST(NextTokenLossTest, IsTheCrossEntropyWithAnyNumberOfThreads) {
  torch::manual_seed(5);
  const torch::Tensor x = torch::randn({60, 16}).requires_grad_(true);
  const torch::Tensor head = torch::randn({3001, 16}).requires_grad_(true);
  const torch::Tensor targets = torch::randint(3001, {3, 20}, torch::kInt64);
  const torch::Tensor expected = torch::cross_entropy_loss(torch::mm(x, head.t()), targets.view({-1}));
  const auto theirs = GradientsOf(expected, x, head);
  const int before = torch::get_num_threads();
  std::vector<torch::Tensor> losses;
  for (const int threads : {1, 3}) {
    torch::set_num_threads(threads);
    losses.push_back(NextTokenLoss(x, head, targets, Precision::kFp32));
    EXPECT_NEAR(losses.back().item<double>(), expected.item<double>(), 1e-6 * expected.item<double>());
    const auto ours = GradientsOf(losses.back(), x, head);
    for (size_t i = 0; i < theirs.size(); ++i)
      EXPECT_TRUE(torch::allclose(ours[i], theirs[i], 1e-4, 1e-6)) << i;
  }
  torch::set_num_threads(before);
  EXPECT_TRUE(torch::equal(losses[0], losses[1]));
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(torch::equal(losses[0], NextTokenLoss(x, head, targets, Precision::kFp32)));
}

TEST(NextTokenLossTest, ShowsWhatIsNotFinite) {
  torch::Tensor x = torch::randn({4, 8});
  x[2][3] = std::numeric_limits<float>::quiet_NaN();
  const torch::Tensor loss =
      NextTokenLoss(x, torch::randn({10, 8}), torch::zeros({4}, torch::kInt64), Precision::kFp32);
  EXPECT_TRUE(std::isnan(loss.item<double>()));
}

TEST(NextTokenLossTest, RejectsATargetOutsideTheVocabulary) {
  for (const int64_t target : {int64_t{-1}, int64_t{10}}) {
    const torch::Tensor targets = torch::full({4}, target, torch::kInt64);
    EXPECT_THROW(NextTokenLoss(torch::randn({4, 8}), torch::randn({10, 8}), targets, Precision::kFp32),
                 c10::Error);
  }
}

TEST(CountedTokenLossTest, LeavesOutNegativeTargets) {
  const torch::Tensor x = torch::randn({6, 4}).requires_grad_(true);
  const torch::Tensor head = torch::randn({10, 4}).requires_grad_(true);
  const torch::Tensor targets = torch::tensor({3, -100, 9, 0, -100, 2}, torch::kInt64).view({2, 3});
  const torch::Tensor expected = torch::cross_entropy_loss(torch::mm(x, head.t()), targets.view({-1}));
  const torch::Tensor found = CountedTokenLoss(x, head, targets, Precision::kFp32);
  EXPECT_NEAR(found.item<double>(), expected.item<double>(), 1e-6);
  const auto ours = GradientsOf(found, x, head), theirs = GradientsOf(expected, x, head);
  for (size_t i = 0; i < theirs.size(); ++i) EXPECT_TRUE(torch::allclose(ours[i], theirs[i], 1e-5, 1e-6));
  const torch::Tensor none =
      CountedTokenLoss(x, head, torch::full({6}, -100, torch::kInt64), Precision::kFp32);
  EXPECT_EQ(none.item<double>(), 0);
}

TEST(HeadLossTest, NeedsNoGradient) {
  const torch::NoGradGuard no_grad;
  const torch::Tensor loss =
      HeadLoss(torch::zeros({2, 4}), torch::randn({10, 4}), torch::zeros({2}, torch::kInt64));
  EXPECT_NEAR(loss.item<double>(), 2.302585, 1e-5);
  EXPECT_FALSE(loss.requires_grad());
}

}  // namespace
}  // namespace atl

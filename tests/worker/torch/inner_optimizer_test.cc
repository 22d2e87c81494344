#include "worker/torch/inner_optimizer.h"

#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim.h>

#include <cmath>
#include <memory>
#include <vector>

#include "core/gpt_shape.h"
#include "tests/worker/torch/cuda_device.h"

namespace atl {
namespace {

const GptOptions kModel = {.layers = 1, .heads = 1, .width = 24, .context = 8, .vocabulary = 30};

// The same parameters and gradients for our optimizer and for LibTorch's, six steps, compared.
void CompareWith(const InnerOptions& options,
                 const std::function<std::unique_ptr<torch::optim::Optimizer>(
                     std::vector<torch::Tensor> matrices, std::vector<torch::Tensor> vectors)>& make,
                 const torch::Device& device = torch::kCPU) {
  FlatParameters parameters = FlatParameters::Create(GptManifest(kModel), device).value();
  torch::manual_seed(1);
  std::vector<torch::Tensor> all, matrices, vectors;
  for (size_t i = 0; i < parameters.manifest().tensors.size(); ++i) {
    const torch::NoGradGuard no_grad;
    parameters.view(i).normal_();
    all.push_back(parameters.view(i).detach().clone().requires_grad_(true));
    (all.back().dim() >= 2 ? matrices : vectors).push_back(all.back());
  }
  InnerOptimizer ours(options, parameters);
  const std::unique_ptr<torch::optim::Optimizer> theirs = make(matrices, vectors);
  for (int step = 0; step < 6; ++step) {
    for (size_t i = 0; i < all.size(); ++i) {
      const torch::Tensor gradient = torch::randn_like(all[i]) * (step % 2 == 0 ? 2.0 : 0.001);
      all[i].mutable_grad() = gradient.clone();
      torch::Tensor own = parameters.view(i).grad();
      own.copy_(gradient);
    }
    const double norm = torch::nn::utils::clip_grad_norm_(all, options.clip_norm);
    EXPECT_NEAR(ours.GradientNorm(1.0), norm, 1e-5 * norm);
    theirs->step();
    ours.Step(options.learning_rate, 1.0, ours.GradientNorm(1.0));
    for (size_t i = 0; i < all.size(); ++i) {
      EXPECT_TRUE(torch::allclose(parameters.view(i), all[i], 2e-6, 2e-7))
          << "step " << step << ", " << parameters.manifest().tensors[i].name;
    }
  }
  EXPECT_EQ(parameters.gradients().abs().max().item<float>(), 0.0f);
  EXPECT_EQ(ours.steps(), 6u);
}

void CompareAdamW(const torch::Device& device) {
  const InnerOptions options = {.learning_rate = 1e-2, .weight_decay = 0.3};
  const auto make = [](const std::vector<torch::Tensor>& matrices,
                       const std::vector<torch::Tensor>& vectors) {
    const auto base = torch::optim::AdamWOptions(1e-2).betas({0.9, 0.99}).eps(1e-8);
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(matrices, std::make_unique<torch::optim::AdamWOptions>(
                                      torch::optim::AdamWOptions(base).weight_decay(0.3)));
    groups.emplace_back(vectors, std::make_unique<torch::optim::AdamWOptions>(
                                     torch::optim::AdamWOptions(base).weight_decay(0)));
    return std::make_unique<torch::optim::AdamW>(groups, base);
  };
  CompareWith(options, make, device);
}

TEST(InnerOptimizerTest, AdamWIsTorchsWithDecayOnMatricesOnly) { CompareAdamW(torch::kCPU); }

using InnerOptimizerCudaTest = testing::CudaTest;

TEST_F(InnerOptimizerCudaTest, AdamWIsTorchsWithDecayOnMatricesOnly) { CompareAdamW(torch::kCUDA); }

TEST_F(InnerOptimizerCudaTest, SgdIsTorchsWithMomentum) {
  const InnerOptions options = {
      .optimizer = InnerOptimizerKind::kSgd, .learning_rate = 1e-1, .momentum = 0.8};
  const auto make = [](std::vector<torch::Tensor> matrices, const std::vector<torch::Tensor>& vectors) {
    matrices.insert(matrices.end(), vectors.begin(), vectors.end());
    return std::make_unique<torch::optim::SGD>(matrices, torch::optim::SGDOptions(1e-1).momentum(0.8));
  };
  CompareWith(options, make, torch::kCUDA);
}

TEST_F(InnerOptimizerCudaTest, TheNormOfManyBlocksIsThatOfTheVector) {
  GptOptions model = kModel;
  model.vocabulary = 3001;  // not a multiple of a block
  FlatParameters parameters = FlatParameters::Create(GptManifest(model), torch::kCUDA).value();
  const InnerOptimizer optimizer({}, parameters);
  torch::Tensor gradients = parameters.gradients();
  gradients.normal_(0, 3);
  const double expected = gradients.to(torch::kCPU, torch::kFloat64).norm().item<double>();
  EXPECT_NEAR(optimizer.GradientNorm(0.5), 0.5 * expected, 1e-6 * expected);
  gradients.narrow(0, 77, 1).fill_(std::nanf(""));
  EXPECT_TRUE(std::isnan(optimizer.GradientNorm(1.0)));
}

TEST(InnerOptimizerTest, AdamIsTorchsWithoutDecay) {
  const InnerOptions options = {
      .optimizer = InnerOptimizerKind::kAdam, .learning_rate = 1e-2, .weight_decay = 0.3};
  CompareWith(options, [](std::vector<torch::Tensor> matrices, const std::vector<torch::Tensor>& vectors) {
    matrices.insert(matrices.end(), vectors.begin(), vectors.end());
    return std::make_unique<torch::optim::Adam>(matrices,
                                                torch::optim::AdamOptions(1e-2).betas({0.9, 0.99}).eps(1e-8));
  });
}

TEST(InnerOptimizerTest, SgdIsTorchsWithMomentum) {
  const InnerOptions options = {
      .optimizer = InnerOptimizerKind::kSgd, .learning_rate = 1e-1, .momentum = 0.8};
  CompareWith(options, [](std::vector<torch::Tensor> matrices, const std::vector<torch::Tensor>& vectors) {
    matrices.insert(matrices.end(), vectors.begin(), vectors.end());
    return std::make_unique<torch::optim::SGD>(matrices, torch::optim::SGDOptions(1e-1).momentum(0.8));
  });
}

// As torch.optim.AdamW leaves a parameter with a gradient of None.
TEST(InnerOptimizerTest, ATensorDoesNotDecayBeforeItsFirstGradient) {
  const InnerOptions options = {.learning_rate = 1e-2, .weight_decay = 0.3};
  FlatParameters parameters = FlatParameters::Create(GptManifest(kModel), torch::kCPU).value();
  {
    const torch::NoGradGuard no_grad;
    torch::Tensor(parameters.values()).fill_(1.0);
  }
  const size_t matrix = 0, other = 1;
  ASSERT_GE(parameters.manifest().tensors[matrix].shape.size(), 2u);
  ASSERT_GE(parameters.manifest().tensors[other].shape.size(), 2u);
  const auto largest = [&](size_t index) { return parameters.view(index).max().item<float>(); };
  InnerOptimizer optimizer(options, parameters);
  parameters.ExpectNoGradient(matrix);
  optimizer.Step(1e-2, 1.0, 0.0);
  EXPECT_EQ(largest(matrix), 1.0f);
  EXPECT_LT(largest(other), 1.0f);
  parameters.SawGradient(matrix);
  optimizer.Step(1e-2, 1.0, 0.0);
  EXPECT_LT(largest(matrix), 1.0f) << "a later gradient of zero is one";

  // A resumed worker decays what had a gradient before, and nothing else.
  torch::Tensor gradient = parameters.view(matrix).grad();
  gradient.fill_(1.0);
  optimizer.Step(1e-2, 1.0, optimizer.GradientNorm(1.0));
  std::vector<std::vector<float>> moments;
  optimizer.Save(moments);
  parameters.ExpectNoGradient(matrix);
  parameters.ExpectNoGradient(other);
  ASSERT_TRUE(InnerOptimizer(options, parameters).Load(3, moments).ok());
  EXPECT_FALSE(parameters.lacks_gradient(matrix));
  EXPECT_TRUE(parameters.lacks_gradient(other));
  EXPECT_EQ(parameters.tensors_without_gradient(), 1u);
}

TEST(InnerOptimizerTest, PaddingStaysZero) {
  FlatParameters parameters = FlatParameters::Create(GptManifest(kModel), torch::kCPU).value();
  InnerOptimizer optimizer({.learning_rate = 1e-2}, parameters);
  for (size_t i = 0; i < parameters.manifest().tensors.size(); ++i) {
    torch::Tensor gradient = parameters.view(i).grad();
    gradient.fill_(1.0);
  }
  optimizer.Step(1e-2, 1.0, optimizer.GradientNorm(1.0));
  torch::Tensor outside = parameters.values().clone();
  for (const TensorSlot& slot : parameters.layout().slots) {
    outside.narrow(0, static_cast<int64_t>(slot.offset), static_cast<int64_t>(slot.elements)).zero_();
  }
  EXPECT_EQ(outside.abs().max().item<float>(), 0.0f);
}

}  // namespace
}  // namespace atl

#include "worker/torch/recompute.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/model_shape.h"
#include "worker/torch/flat_parameters.h"
#include "worker/torch/generator_state.h"
#include "worker/torch/language_model.h"

namespace atl {
namespace {

TEST(RecomputedTest, TheBackwardPassComputesTheBlockAgainWithTheSameRandomNumbers) {
  const torch::Tensor weight = torch::randn({6, 6}).requires_grad_(true);
  int calls = 0;
  std::vector<torch::Tensor> results;
  const ModelBlock block = [&](const torch::Tensor& x) {
    ++calls;
    results.push_back(torch::dropout(torch::mm(x, weight), 0.5, /*train=*/true));
    return results.back();
  };
  torch::manual_seed(3);
  const torch::Tensor x = torch::randn({5, 6}).requires_grad_(true);
  const torch::Tensor y = Recomputed(block, x, Draws::kRandomNumbers);
  EXPECT_EQ(calls, 1);
  const torch::Tensor later = torch::rand({4});
  const std::string state = GeneratorState(torch::kCPU);
  y.pow(2).sum().backward();
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(torch::equal(results[0], results[1]));
  EXPECT_EQ(GeneratorState(torch::kCPU), state) << "the backward pass draws nothing";

  const torch::Tensor gradient = weight.grad().clone(), input_gradient = x.grad().clone();
  weight.mutable_grad() = torch::Tensor();
  x.mutable_grad() = torch::Tensor();
  torch::manual_seed(3);
  torch::randn({5, 6});
  block(x).pow(2).sum().backward();
  EXPECT_TRUE(torch::equal(weight.grad(), gradient));
  EXPECT_TRUE(torch::equal(x.grad(), input_gradient));
  EXPECT_TRUE(torch::equal(torch::rand({4}), later)) << "what is drawn afterwards is the same";
}

struct Step {
  torch::Tensor loss;
  torch::Tensor gradients;
};

Step StepOf(const ModelOptions& options, Precision precision, Activations activations) {
  FlatParameters parameters = FlatParameters::Create(ManifestOf(options).value(), torch::kCPU).value();
  const auto model = MakeLanguageModel(options, precision, parameters, activations);
  model->Initialise(5);
  torch::manual_seed(9);
  Step step;
  for (int micro = 0; micro < 2; ++micro) {  // gradients of both are added up
    const torch::Tensor tokens = torch::randint(options.vocabulary(), {3, options.context()}, torch::kInt64);
    step.loss = model->Loss(tokens, tokens.flip({1}), ModelMode::kTraining);
    step.loss.backward();
  }
  step.gradients = parameters.gradients().clone();
  return step;
}

TEST(RecomputedTest, EveryFamilyHasTheSameLossAndGradients) {
  const GptOptions gpt = {
      .layers = 3, .heads = 4, .width = 32, .context = 16, .vocabulary = 101, .dropout = 0.2};
  const LlamaOptions llama = {.layers = 3,
                              .heads = 4,
                              .kv_heads = 2,
                              .width = 32,
                              .intermediate = 48,
                              .context = 16,
                              .vocabulary = 101,
                              .qk_norm = true,
                              .dropout = 0.2};
  for (const ModelOptions& options : {ModelOptions(gpt), ModelOptions(llama)}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      const Step kept = StepOf(options, precision, Activations::kKept);
      const Step recomputed = StepOf(options, precision, Activations::kRecomputed);
      EXPECT_TRUE(torch::equal(kept.loss, recomputed.loss));
      EXPECT_TRUE(torch::equal(kept.gradients, recomputed.gradients));
      EXPECT_GT(kept.gradients.norm().item<double>(), 0);
    }
  }
}

TEST(RecomputedTest, DropoutActsInTrainingOnly) {
  LlamaOptions options = {
      .layers = 2, .heads = 2, .width = 16, .intermediate = 24, .context = 16, .vocabulary = 50};
  options.dropout = 0.5;
  FlatParameters parameters =
      FlatParameters::Create(ManifestOf(ModelOptions(options)).value(), torch::kCPU).value();
  const auto model = MakeLanguageModel(ModelOptions(options), Precision::kFp32, parameters);
  model->Initialise(5);
  parameters.values().detach().mul_(10);
  const torch::Tensor tokens = torch::randint(50, {2, 16}, torch::kInt64);
  const auto logits = [&](ModelMode mode) { return model->Logits(tokens, mode); };
  EXPECT_TRUE(model->draws_random_numbers());
  EXPECT_TRUE(torch::equal(logits(ModelMode::kEvaluation), logits(ModelMode::kEvaluation)));
  EXPECT_FALSE(torch::equal(logits(ModelMode::kTraining), logits(ModelMode::kTraining)));
}

}  // namespace
}  // namespace atl

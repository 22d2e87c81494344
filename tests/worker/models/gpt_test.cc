#include "worker/models/gpt.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/worker/torch/tiny_run.h"
#include "worker/torch/gelu.h"

namespace atl {
namespace {

FlatParameters Parameters(const GptOptions& options) {
  return FlatParameters::Create(GptManifest(options), torch::kCPU).value();
}

TEST(GptManifestTest, NamesAreHuggingFaces) {
  GptOptions options = testing::TinyRun().model.gpt();
  const Manifest tied = GptManifest(options);
  ASSERT_EQ(tied.tensors.size(), 2u + 12u * options.layers + 2u);
  EXPECT_EQ(tied.tensors[0].name, "transformer.wte.weight");
  EXPECT_TRUE(tied.tensors[0].embedding && tied.tensors[1].embedding);
  EXPECT_EQ(tied.tensors[4].name, "transformer.h.0.attn.c_attn.weight");
  EXPECT_EQ(tied.tensors[4].shape, (std::vector<int64_t>{32, 96}));
  EXPECT_FALSE(tied.tensors[4].embedding);
  EXPECT_EQ(tied.tensors.back().name, "transformer.ln_f.bias");
  options.tied_embeddings = false;
  options.bias = false;
  const Manifest bare = GptManifest(options);
  ASSERT_EQ(bare.tensors.size(), 2u + 6u * options.layers + 2u);
  EXPECT_EQ(bare.tensors.back().name, "lm_head.weight");
}

// Every index names the tensor it is called after, for each combination of options.
TEST(GptManifestTest, IndicesPointAtTheirTensors) {
  for (const bool bias : {true, false}) {
    for (const bool tied : {true, false}) {
      GptOptions options = testing::TinyRun().model.gpt();
      options.bias = bias;
      options.tied_embeddings = tied;
      const Manifest manifest = GptManifest(options);
      const GptTensorIndex index(options);
      const auto name = [&](size_t i) { return manifest.tensors.at(i).name; };
      EXPECT_EQ(name(index.block(1).mlp_proj), "transformer.h.1.mlp.c_proj.weight");
      EXPECT_EQ(name(index.block(1).ln_2), "transformer.h.1.ln_2.weight");
      EXPECT_EQ(name(index.ln_f), "transformer.ln_f.weight");
      EXPECT_EQ(name(index.lm_head), tied ? "transformer.wte.weight" : "lm_head.weight");
      if (bias) {
        EXPECT_EQ(name(index.block(0).c_attn_bias), "transformer.h.0.attn.c_attn.bias");
      }
    }
  }
}

TEST(ModelFactoryTest, AnExternalModelCannotBeBuilt) {
  const absl::Status rejected = CheckModelOptions(ModelOptions(ExternalOptions()));
  EXPECT_TRUE(absl::IsFailedPrecondition(rejected)) << rejected;
  EXPECT_TRUE(CheckModelOptions(testing::TinyRun().model).ok());
}

TEST(GptTest, InitialisesAsGpt2) {
  GptOptions options = testing::TinyRun().model.gpt();
  options.width = 128;
  FlatParameters parameters = Parameters(options);
  Gpt(options, Precision::kFp32, parameters).Initialise(5);
  const GptTensorIndex::Block block = GptTensorIndex(options).block(0);
  const auto deviation = [&](size_t i) { return parameters.view(i).std().item<double>(); };
  EXPECT_NEAR(deviation(0), 0.02, 0.001);
  EXPECT_NEAR(deviation(block.c_fc), 0.02, 0.001);
  EXPECT_NEAR(deviation(block.attn_proj), 0.02 / std::sqrt(2.0 * options.layers), 0.001);
  EXPECT_NEAR(deviation(block.mlp_proj), 0.02 / std::sqrt(2.0 * options.layers), 0.001);
  EXPECT_EQ(parameters.view(block.ln_1).min().item<float>(), 1.0f);
  EXPECT_EQ(parameters.view(block.c_attn_bias).abs().max().item<float>(), 0.0f);
}

// What a position says depends on what stands before it only.
TEST(GptTest, TheFutureIsHidden) {
  const GptOptions options = testing::TinyRun().model.gpt();
  FlatParameters parameters = Parameters(options);
  const Gpt model(options, Precision::kFp32, parameters);
  Gpt(model).Initialise(5);
  torch::Tensor tokens = torch::randint(options.vocabulary, {2, options.context}, torch::kInt64);
  const torch::Tensor before = model.Logits(tokens, ModelMode::kEvaluation).view({2, options.context, -1});
  tokens = tokens.clone();
  tokens.index_put_({torch::indexing::Slice(), 9}, 3);
  tokens.index_put_({0, 9}, 4);
  const torch::Tensor after = model.Logits(tokens, ModelMode::kEvaluation).view({2, options.context, -1});
  EXPECT_TRUE(torch::allclose(before.narrow(1, 0, 9), after.narrow(1, 0, 9), 0, 1e-6));
  EXPECT_FALSE(torch::allclose(before.narrow(1, 9, 1), after.narrow(1, 9, 1), 0, 1e-4));
}

// The gradient of the loss against finite differences in float64 steps of the float32 model, along random
// directions.
TEST(GptTest, GradientsAreDerivatives) {
  for (const bool tied : {true, false}) {
    GptOptions options = testing::TinyRun().model.gpt();
    options.tied_embeddings = tied;
    FlatParameters parameters = Parameters(options);
    Gpt model(options, Precision::kFp32, parameters);
    model.Initialise(5);
    const torch::Tensor tokens = torch::randint(options.vocabulary, {4, options.context}, torch::kInt64);
    const torch::Tensor targets = torch::randint(options.vocabulary, {4, options.context}, torch::kInt64);
    model.Loss(tokens, targets, ModelMode::kTraining).backward();
    const torch::NoGradGuard no_grad;
    const torch::Tensor gradient = parameters.gradients().clone();
    const torch::Tensor direction = gradient / gradient.norm();
    torch::Tensor values = parameters.values();
    const double step = 1e-2;
    values.add_(direction, step);
    const double up = model.Loss(tokens, targets, ModelMode::kTraining).item<double>();
    values.add_(direction, -2 * step);
    const double down = model.Loss(tokens, targets, ModelMode::kTraining).item<double>();
    const double norm = gradient.norm().item<double>();
    EXPECT_NEAR((up - down) / (2 * step), norm, 0.01 * norm) << "tied " << tied;
  }
}

TEST(GeluTest, AgreesWithLibTorchForwardAndBackward) {
  torch::Tensor ours = (torch::randn({33, 77}) * 3).requires_grad_(true);
  torch::Tensor theirs = ours.detach().clone().requires_grad_(true);
  const torch::Tensor weight = torch::randn({33, 77});
  (Gelu(ours) * weight).sum().backward();
  (torch::gelu(theirs, "tanh") * weight).sum().backward();
  EXPECT_TRUE(torch::allclose(Gelu(ours), torch::gelu(theirs, "tanh"), 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(ours.grad(), theirs.grad(), 1e-5, 5e-6));
  EXPECT_TRUE(Gelu(ours.detach().to(torch::kBFloat16)).scalar_type() == torch::kBFloat16);
}

}  // namespace
}  // namespace atl

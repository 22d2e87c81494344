#include "worker/models/llama.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/worker/torch/tiny_run.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

LlamaOptions Tiny() {
  return {.layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 12,
          .width = 32,
          .intermediate = 80,
          .context = 16,
          .vocabulary = 256};
}

/// With everything that the family has.
LlamaOptions Full() {
  LlamaOptions options = Tiny();
  options.tied_embeddings = false;
  options.qkv_bias = true;
  options.qk_norm = true;
  options.rope_scaling = {.factor = 8, .original_context = 8};
  return options;
}

FlatParameters ParametersOf(const LlamaOptions& options) {
  return FlatParameters::Create(LlamaManifest(options), torch::kCPU).value();
}

TEST(LlamaTest, InitialisesAsHuggingFace) {
  LlamaOptions options = Full();
  options.width = 128;
  FlatParameters parameters = ParametersOf(options);
  Llama(options, Precision::kFp32, parameters).Initialise(5);
  const LlamaTensorIndex index(options);
  const LlamaTensorIndex::Block block = index.block(1);
  for (const size_t matrix : {index.embedding, block.q, block.o, block.down, index.lm_head}) {
    EXPECT_NEAR(parameters.view(matrix).std().item<double>(), 0.02, 0.001) << matrix;
  }
  for (const size_t gain : {block.q_norm, block.input_norm, index.norm}) {
    EXPECT_TRUE(parameters.view(gain).eq(1).all().item<bool>()) << gain;
  }
  EXPECT_TRUE(parameters.view(block.k_bias).eq(0).all().item<bool>());
  FlatParameters again = ParametersOf(options);
  Llama(options, Precision::kFp32, again).Initialise(5);
  EXPECT_TRUE(torch::equal(again.values(), parameters.values())) << "one seed, one model";
  Llama(options, Precision::kFp32, again).Initialise(6);
  EXPECT_FALSE(torch::equal(again.values(), parameters.values()));
}

// What a position says depends on what stands before it only.
TEST(LlamaTest, TheFutureIsHidden) {
  const LlamaOptions options = Full();
  FlatParameters parameters = ParametersOf(options);
  Llama model(options, Precision::kFp32, parameters);
  model.Initialise(5);
  torch::manual_seed(1);
  const torch::Tensor tokens = torch::randint(options.vocabulary, {2, options.context}, torch::kInt64);
  const torch::Tensor before = model.Logits(tokens, ModelMode::kEvaluation).view({2, options.context, -1});
  torch::Tensor changed = tokens.clone();
  changed.index_put_({torch::indexing::Slice(), 9}, (tokens.index({0, 9}) + 1) % 200);
  const torch::Tensor after = model.Logits(changed, ModelMode::kEvaluation).view({2, options.context, -1});
  EXPECT_TRUE(torch::allclose(before.narrow(1, 0, 9), after.narrow(1, 0, 9), 0, 1e-6));
  EXPECT_FALSE(torch::allclose(before.narrow(1, 9, 1), after.narrow(1, 9, 1), 0, 1e-4));
  EXPECT_FALSE(torch::allclose(before.narrow(1, 10, 1), after.narrow(1, 10, 1), 0, 1e-5)) << "it is read";
}

// The gradient of the loss against finite differences of the float32 model, along the gradient.
TEST(LlamaTest, GradientsAreDerivatives) {
  for (const LlamaOptions& options : {Tiny(), Full()}) {
    FlatParameters parameters = ParametersOf(options);
    Llama model(options, Precision::kFp32, parameters);
    model.Initialise(5);
    const torch::Tensor tokens = torch::randint(options.vocabulary, {4, options.context}, torch::kInt64);
    const torch::Tensor targets = torch::randint(options.vocabulary, {4, options.context}, torch::kInt64);
    model.Loss(tokens, targets, ModelMode::kTraining).backward();
    const torch::NoGradGuard no_grad;
    const torch::Tensor gradient = parameters.gradients().clone();
    torch::Tensor values = parameters.values();
    const double norm = gradient.norm().item<double>();
    const double step = 1e-2;
    values.add_(gradient, step / norm);
    const double up = model.Loss(tokens, targets, ModelMode::kTraining).item<double>();
    values.add_(gradient, -2 * step / norm);
    const double down = model.Loss(tokens, targets, ModelMode::kTraining).item<double>();
    EXPECT_NEAR((up - down) / (2 * step), norm, 0.01 * norm) << "tied " << options.tied_embeddings;
  }
}

TEST(LlamaTest, Bfloat16IsNearFloat32) {
  const LlamaOptions options = Full();
  FlatParameters parameters = ParametersOf(options);
  Llama exact(options, Precision::kFp32, parameters);
  exact.Initialise(5);
  const Llama rounded(options, Precision::kBf16, parameters);
  const torch::Tensor tokens = torch::randint(options.vocabulary, {2, options.context}, torch::kInt64);
  const torch::Tensor expected = exact.Logits(tokens, ModelMode::kEvaluation);
  const torch::Tensor got = rounded.Logits(tokens, ModelMode::kEvaluation);
  EXPECT_EQ(got.scalar_type(), torch::kFloat32);
  const double error = (got - expected).norm().item<double>() / expected.norm().item<double>();
  EXPECT_LT(error, 0.02);
  EXPECT_GT(error, 1e-5) << "nothing was rounded";
  rounded.Loss(tokens, tokens, ModelMode::kTraining).backward();
  EXPECT_TRUE(parameters.gradients().isfinite().all().item<bool>());
  EXPECT_GT(parameters.view(LlamaTensorIndex(options).block(0).q_norm).grad().norm().item<double>(), 0);
}

TEST(ModelFactoryTest, NamesTheSettingOfALlamaThatCannotBe) {
  EXPECT_TRUE(CheckModelOptions(ModelOptions(Full())).ok());
  LlamaOptions options = Tiny();
  options.kv_heads = 3;
  EXPECT_THAT(std::string(CheckModelOptions(ModelOptions(options)).message()),
              HasSubstr("model.llama.kv_heads: 3 does not divide model.llama.heads, which is 4"));
  options = Tiny();
  options.intermediate = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(CheckModelOptions(ModelOptions(options))));
}

TEST(LlamaTest, AReplicaTrainsIt) {
  TorchReplicaOptions options = testing::TinyReplica(testing::TinyDataset("llama_data"));
  options.run.model = ModelOptions(Tiny());
  const auto replica = CreateTorchReplica(options);
  ASSERT_TRUE(replica.ok()) << replica.status();
  double first = 0, last = 0;
  for (int step = 0; step < 30; ++step) {
    const auto result = (*replica)->InnerStep(3e-3);
    ASSERT_TRUE(result.ok()) << result.status();
    if (step == 0) first = result->loss;
    last = result->loss;
  }
  EXPECT_NEAR(first, std::log(256), 0.2);
  EXPECT_LT(last, first - 1.5);
}

}  // namespace
}  // namespace atl

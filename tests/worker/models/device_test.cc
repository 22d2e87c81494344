// Every family on a CUDA device against the processor: loss, gradients and the tokens that follow.
#include <gtest/gtest.h>
#include <torch/script.h>

#include <string>
#include <vector>

#include "common/file.h"
#include "tests/worker/torch/cuda_device.h"
#include "worker/torch/flat_parameters.h"
#include "worker/torch/head_loss.h"
#include "worker/torch/language_model.h"

namespace atl {
namespace {

ModelOptions TinyGpt() {
  // A vocabulary that the head pads in bfloat16.
  return ModelOptions(
      GptOptions{.layers = 2, .heads = 2, .width = 64, .context = 32, .vocabulary = 4 * kHeadColumns + 17});
}

ModelOptions TinyLlama() {
  return ModelOptions(LlamaOptions{.layers = 2,
                                   .heads = 4,
                                   .kv_heads = 2,
                                   .head_dim = 32,
                                   .width = 64,
                                   .intermediate = 160,
                                   .context = 32,
                                   .vocabulary = 301,
                                   .qkv_bias = true,
                                   .qk_norm = true});
}

ModelOptions Script() {
  torch::manual_seed(1);
  torch::jit::Module module("Model");
  module.register_parameter("table", (torch::randn({256, 64}) * 0.1).requires_grad_(true), false);
  module.register_parameter("hidden", (torch::randn({64, 64}) * 0.2).requires_grad_(true), false);
  module.register_parameter("frozen", torch::full({64}, 0.5), false);
  module.register_buffer("scale", torch::full({64}, 0.7));
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define(R"(
def forward(self, tokens, targets):
    x = torch.embedding(self.table, tokens)
    x = torch.relu(torch.matmul(x, self.hidden) * self.scale + self.frozen)
    logits = torch.matmul(x, self.table.t())
    return torch.cross_entropy_loss(logits.view([-1, 256]), targets.view([-1]))
)");
  const std::string path = JoinPath(::testing::TempDir(), "device.pt");
  module.save(path);
  return ModelOptions(ExternalOptions{.context = 32, .vocabulary = 256, .script = path});
}

struct Step {
  double loss = 0;
  torch::Tensor gradients;
  std::vector<int64_t> likeliest;  // greedy continuation; empty for a script
};

Step StepOn(const torch::Device& device, const ModelOptions& options, Precision precision,
            Activations activations = Activations::kKept) {
  FlatParameters parameters = FlatParameters::Create(ManifestToTrain(options).value(), device).value();
  const auto model = MakeLanguageModel(options, precision, parameters, activations);
  model->Initialise(5);
  torch::manual_seed(9);
  const torch::Tensor tokens = torch::randint(options.vocabulary(), {4, options.context()}, torch::kInt64);
  const torch::Tensor there = tokens.to(device);
  torch::manual_seed(11);
  const torch::Tensor loss = model->Loss(there, there.flip({1}), ModelMode::kTraining);
  loss.backward();
  Step step{
      .loss = loss.item<double>(), .gradients = parameters.gradients().to(torch::kCPU), .likeliest = {}};
  if (options.external() != nullptr) return step;
  const torch::NoGradGuard no_grad;
  KeyValueCache cache = model->MakeCache(24);
  torch::Tensor next = there.narrow(0, 0, 1).narrow(1, 0, 5);
  for (int i = 0; i < 16; ++i) {
    next = model->NextLogits(next, cache).argmax(1, /*keepdim=*/true);
    step.likeliest.push_back(next.item<int64_t>());
  }
  return step;
}

double Apart(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

using ModelsDeviceTest = testing::CudaTest;

TEST_F(ModelsDeviceTest, Float32IsThatOfTheProcessor) {
  for (const ModelOptions& options : {TinyGpt(), TinyLlama(), Script()}) {
    const Step host = StepOn(torch::kCPU, options, Precision::kFp32);
    const Step device = StepOn(torch::kCUDA, options, Precision::kFp32);
    EXPECT_NEAR(device.loss, host.loss, 1e-5 * host.loss);
    EXPECT_LT(Apart(device.gradients, host.gradients), 1e-4);
    EXPECT_EQ(device.likeliest, host.likeliest);
  }
}

TEST_F(ModelsDeviceTest, Bf16IsNearFloat32) {
  for (const ModelOptions& options : {TinyGpt(), TinyLlama()}) {
    const Step exact = StepOn(torch::kCUDA, options, Precision::kFp32);
    const Step rounded = StepOn(torch::kCUDA, options, Precision::kBf16);
    EXPECT_NE(rounded.loss, exact.loss);
    EXPECT_NEAR(rounded.loss, exact.loss, 1e-2 * exact.loss);
    EXPECT_LT(Apart(rounded.gradients, exact.gradients), 3e-2);
  }
}

TEST_F(ModelsDeviceTest, RecomputedBlocksDropTheSameValues) {
  for (ModelOptions options : {TinyGpt(), TinyLlama()}) {
    (options.llama() != nullptr ? options.llama()->dropout : options.gpt().dropout) = 0.3;
    const Step kept = StepOn(torch::kCUDA, options, Precision::kFp32);
    const Step again = StepOn(torch::kCUDA, options, Precision::kFp32, Activations::kRecomputed);
    EXPECT_EQ(again.loss, kept.loss);
    EXPECT_LT(Apart(again.gradients, kept.gradients), 1e-5);
  }
}

}  // namespace
}  // namespace atl

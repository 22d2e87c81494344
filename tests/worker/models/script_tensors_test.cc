#include "worker/models/script_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/file.h"
#include "worker/models/script_model.h"
#include "worker/torch/inner_optimizer.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kWidth = 16;

torch::Tensor Random(const std::vector<int64_t>& shape) {
  return (torch::randn(shape) * 0.3).requires_grad_(true);
}

/// A model as torch.jit.script makes one of nn.GRU, nn.LSTM and nn.RNN: `flat` holds the parameters of the
/// mixer a second time, and only it is computed with. `mixed` is the expression that mixes `x` over time.
torch::jit::Module Recurrent(const std::string& mixed, int64_t gates) {
  torch::manual_seed(1);
  torch::jit::Module module("Model");
  module.register_attribute("training", c10::BoolType::get(), true);
  module.register_parameter("table", Random({256, kWidth}), /*is_buffer=*/false);
  module.register_parameter("head", Random({256, kWidth}), false);
  c10::List<torch::Tensor> flat;
  for (const char* const name : {"weight_ih", "weight_hh", "bias_ih", "bias_hh"}) {
    const bool matrix = std::string(name).starts_with("weight");
    const torch::Tensor values =
        Random(matrix ? std::vector<int64_t>{gates * kWidth, kWidth} : std::vector<int64_t>{gates * kWidth});
    module.register_parameter(name, values, false);
    flat.push_back(values);
  }
  module.register_attribute("flat", c10::ListType::ofTensors(), flat);
  module.define(
      "def forward(self, tokens, targets):\n"
      "    x = torch.embedding(self.table, tokens)\n"
      "    h = torch.zeros([1, tokens.size(0), 16])\n"
      "    y = " +
      mixed +
      "\n"
      "    logits = torch.matmul(y, self.head.t())\n"
      "    return torch.cross_entropy_loss(logits.reshape([-1, 256]), targets.reshape([-1]))\n");
  return module;
}

std::string Saved(const torch::jit::Module& module, const std::string& name) {
  const std::string path = JoinPath(::testing::TempDir(), name + ".pt");
  module.save(path);
  return path;
}

struct Batch {
  torch::Tensor tokens, targets;
};

std::vector<Batch> Batches() {
  torch::manual_seed(2);
  std::vector<Batch> batches;
  for (int i = 0; i < 4; ++i) {
    batches.push_back(
        {torch::randint(256, {3, 8}, torch::kInt64), torch::randint(256, {3, 8}, torch::kInt64)});
  }
  return batches;
}

constexpr double kRate = 1e-2;
constexpr double kDecay = 0.3;

/// Parameters by name.
using Values = std::vector<std::pair<std::string, torch::Tensor>>;

/// What the worker makes of the file in a few steps.
Values TrainedHere(const std::string& path) {
  FlatParameters parameters = FlatParameters::Create(ManifestOfScript(path).value(), torch::kCPU).value();
  const ScriptModel model(path, parameters);
  InnerOptimizer optimizer({.learning_rate = kRate, .weight_decay = kDecay, .clip_norm = 0}, parameters);
  for (const Batch& batch : Batches()) {
    model.Loss(batch.tokens, batch.targets, ModelMode::kTraining).backward();
    optimizer.Step(kRate, 1.0, optimizer.GradientNorm(1.0));
  }
  Values values;
  for (size_t i = 0; i < parameters.manifest().tensors.size(); ++i) {
    values.emplace_back(parameters.manifest().tensors[i].name, parameters.view(i).detach().clone());
  }
  return values;
}

/// The same steps by PyTorch's own optimizer, on the module's own tensors. Matrices decay.
Values TrainedByTorch(torch::jit::Module module) {
  std::vector<torch::Tensor> matrices, vectors;
  for (const ScriptTensor& tensor : TrainedTensors(module)) {
    (tensor.values.dim() >= 2 ? matrices : vectors).push_back(tensor.values);
  }
  const auto base = torch::optim::AdamWOptions(kRate).betas({0.9, 0.99}).eps(1e-8);
  const auto group = [&](const std::vector<torch::Tensor>& members, double decay) {
    return torch::optim::OptimizerParamGroup(
        members,
        std::make_unique<torch::optim::AdamWOptions>(torch::optim::AdamWOptions(base).weight_decay(decay)));
  };
  std::vector<torch::optim::OptimizerParamGroup> groups = {group(matrices, kDecay)};
  if (!vectors.empty()) groups.push_back(group(vectors, 0));
  torch::optim::AdamW optimizer(groups, base);
  for (const Batch& batch : Batches()) {
    // One that the loss does not depend on keeps its undefined gradient.
    for (const ScriptTensor& tensor : TrainedTensors(module))
      torch::Tensor(tensor.values).mutable_grad().reset();
    module.forward({batch.tokens, batch.targets}).toTensor().backward();
    optimizer.step();
  }
  Values values;
  for (const ScriptTensor& tensor : TrainedTensors(module)) {
    values.emplace_back(tensor.name, tensor.values.detach().clone());
  }
  return values;
}

void ExpectTrainsAsTorch(const std::function<torch::jit::Module()>& make, const std::string& name,
                         const std::vector<std::string>& unused = {}) {
  SCOPED_TRACE(name);
  const Values before = [&] {
    Values values;
    for (const ScriptTensor& tensor : TrainedTensors(make())) values.emplace_back(tensor.name, tensor.values);
    return values;
  }();
  const Values here = TrainedHere(Saved(make(), name));
  const Values expected = TrainedByTorch(make());
  ASSERT_EQ(here.size(), expected.size());
  for (size_t i = 0; i < here.size(); ++i) {
    ASSERT_EQ(here[i].first, expected[i].first);
    EXPECT_TRUE(torch::allclose(here[i].second, expected[i].second, 1e-4, 1e-5))
        << here[i].first << " differs by " << (here[i].second - expected[i].second).abs().max();
    const bool moves = std::ranges::find(unused, here[i].first) == unused.end();
    EXPECT_EQ(torch::equal(here[i].second, before[i].second), !moves) << here[i].first;
  }
}

TEST(ScriptTensorsTest, ParametersInAListAreTrained) {
  ExpectTrainsAsTorch(
      [] { return Recurrent("torch.gru(x, h, self.flat, True, 1, 0., self.training, False, True)[0]", 3); },
      "gru");
  ExpectTrainsAsTorch(
      [] {
        return Recurrent("torch.lstm(x, [h, h], self.flat, True, 1, 0., self.training, False, True)[0]", 4);
      },
      "lstm");
  ExpectTrainsAsTorch(
      [] {
        return Recurrent("torch.rnn_tanh(x, h, self.flat, True, 1, 0., self.training, False, True)[0]", 1);
      },
      "rnn");
  ExpectTrainsAsTorch(
      [] {
        return Recurrent(
            "torch.tanh(torch.matmul(x, self.flat[0]) + torch.matmul(x, self.flat[1]) + "
            "self.flat[2] + self.flat[3])",
            1);
      },
      "list");
}

TEST(ScriptTensorsTest, ParametersInOtherHoldersAreTrained) {
  const auto make = [] {
    torch::jit::Module module = Recurrent("torch.matmul(x, self.weight_ih)", 1);
    torch::manual_seed(3);
    const torch::Tensor one = Random({kWidth, kWidth}), two = Random({kWidth, kWidth});
    torch::jit::Module part("Part");
    part.register_attribute("training", c10::BoolType::get(), true);
    part.register_parameter("one", one, false);
    part.register_parameter("two", two, false);
    module.register_module("part", part);
    c10::Dict<std::string, torch::Tensor> by_name;
    by_name.insert("one", one);
    module.register_attribute("by_name",
                              c10::DictType::create(c10::StringType::get(), c10::TensorType::get()), by_name);
    module.register_attribute("pair", c10::TupleType::create({c10::IntType::get(), c10::TensorType::get()}),
                              c10::ivalue::Tuple::create(int64_t{1}, two));
    torch::jit::Module whole("Whole");
    whole.register_attribute("training", c10::BoolType::get(), true);
    whole.register_module("model", module);
    whole.define(
        "def forward(self, tokens, targets):\n"
        "    x = torch.embedding(self.model.table, tokens)\n"
        "    x = torch.tanh(torch.matmul(x, self.model.by_name['one']))\n"
        "    x = torch.tanh(torch.matmul(x, self.model.pair[1]))\n"
        "    logits = torch.matmul(x, self.model.head.t())\n"
        "    return torch.cross_entropy_loss(logits.reshape([-1, 256]), targets.reshape([-1]))\n");
    return whole;
  };
  ExpectTrainsAsTorch(make, "holders",
                      {"model.weight_ih", "model.weight_hh", "model.bias_ih", "model.bias_hh"});
}

TEST(ScriptTensorsTest, AnUnusedParameterStays) {
  ExpectTrainsAsTorch(
      [] { return Recurrent("torch.tanh(torch.matmul(x, self.weight_ih) + self.bias_ih)", 1); }, "unused",
      {"weight_hh", "bias_hh"});
}

std::string Problem(const std::function<void(torch::jit::Module&)>& change) {
  torch::jit::Module module = Recurrent("torch.matmul(x, self.weight_ih)", 1);
  change(module);
  const absl::Status status = ManifestOfScript(Saved(module, "shared")).status();
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(ScriptTensorsTest, NamesTensorsThatShareMemory) {
  const auto table = [](torch::jit::Module& module) { return module.attr("table").toTensor().detach(); };
  EXPECT_THAT(
      Problem([&](auto& module) {
        module.register_parameter("other", table(module).t().requires_grad_(true), false);
      }),
      HasSubstr("parameter 'table' and 'other' share memory but are different tensors; tie them by one"));
  EXPECT_THAT(Problem([&](auto& module) { module.register_buffer("rows", table(module).narrow(0, 3, 2)); }),
              HasSubstr("parameter 'table' and 'rows' share memory"));
  EXPECT_THAT(Problem([&](auto& module) {
                c10::List<torch::Tensor> list({torch::zeros({1}), table(module)});
                module.register_attribute("kept", c10::ListType::ofTensors(), list);
              }),
              HasSubstr("parameter 'table' and 'kept[1]' share memory"));
  EXPECT_THAT(Problem([&](auto& module) {
                module.register_parameter("gain", torch::ones({1}).expand({16}).requires_grad_(true), false);
              }),
              HasSubstr("parameter 'gain' repeats its values"));
}

TEST(ScriptTensorsTest, AcceptsPartsOfOneStorageAndTiedParameters) {
  EXPECT_EQ(Problem([](auto& module) {
              const torch::Tensor both = torch::randn({8, 4});
              module.register_parameter("first", both.narrow(0, 0, 4).detach().requires_grad_(true), false);
              module.register_parameter("second", both.narrow(0, 4, 4).detach().requires_grad_(true), false);
              module.register_buffer("copy", module.attr("table").toTensor().detach().clone());
              module.register_parameter("tied", module.attr("table").toTensor(), false);
              module.register_buffer("empty", torch::zeros({0}));
            }),
            "");
}

}  // namespace
}  // namespace atl

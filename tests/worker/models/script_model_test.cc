#include "worker/models/script_model.h"

#include <caffe2/serialize/inline_container.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "common/file.h"
#include "tests/worker/torch/tiny_run.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kForward[] = R"(
def forward(self, tokens, targets):
    x = torch.embedding(self.table, tokens)
    if self.training:
        x = torch.dropout(x, 0.1, True)
    x = torch.relu(torch.matmul(x, self.hidden) + self.frozen)
    logits = torch.matmul(x, self.shared.t())
    return torch.cross_entropy_loss(logits.view([-1, 256]), targets.view([-1]))
)";

/// A small language model whose output shares its embedding, with a parameter that is not trained.
torch::jit::Module MakeModule(const std::string& forward = kForward) {
  torch::manual_seed(1);
  torch::jit::Module module("Model");
  const torch::Tensor table = (torch::randn({256, 16}) * 0.1).requires_grad_(true);
  module.register_parameter("table", table, /*is_buffer=*/false);
  module.register_parameter("hidden", (torch::randn({16, 16}) * 0.3).requires_grad_(true), false);
  module.register_parameter("shared", table, false);
  module.register_parameter("frozen", torch::full({16}, 0.5), false);
  module.register_attribute("training", c10::BoolType::get(), true);
  module.define(forward);
  return module;
}

std::string Saved(const torch::jit::Module& module, const std::string& name) {
  const std::string path = JoinPath(::testing::TempDir(), name + ".pt");
  module.save(path);
  return path;
}

ModelOptions Options(const std::string& path) {
  return ModelOptions(ExternalOptions{.context = 16, .vocabulary = 256, .script = path});
}

TEST(ScriptModelTest, TrainsEachParameterOnce) {
  const auto manifest = ManifestOfScript(Saved(MakeModule(), "once"));
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  ASSERT_EQ(manifest->tensors.size(), 2U) << "neither the tied one nor the one that needs no gradient";
  EXPECT_EQ(manifest->tensors[0].name, "table");
  EXPECT_EQ(manifest->tensors[1].name, "hidden");
  EXPECT_EQ(manifest->tensors[1].shape, (std::vector<int64_t>{16, 16}));
  EXPECT_EQ(manifest->base_fingerprint.size(), 64U);
}

TEST(ScriptModelTest, ComputesWithTheParametersOfTheReplica) {
  const std::string path = Saved(MakeModule(), "computes");
  FlatParameters parameters = FlatParameters::Create(*ManifestOfScript(path), torch::kCPU).value();
  const auto model = MakeLanguageModel(Options(path), Precision::kFp32, parameters);
  torch::jit::Module alone = MakeModule();
  alone.train(false);
  const torch::Tensor tokens = torch::randint(256, {3, 16}, torch::kInt64);
  const torch::Tensor loss = model->Loss(tokens, tokens, ModelMode::kEvaluation);
  EXPECT_EQ(loss.item<double>(), alone.forward({tokens, tokens}).toTensor().item<double>());
  loss.backward();
  alone.forward({tokens, tokens}).toTensor().backward();
  EXPECT_TRUE(torch::allclose(parameters.view(0).grad(), alone.attr("table").toTensor().grad()))
      << "of both of its uses";
  EXPECT_TRUE(torch::allclose(parameters.view(1).grad(), alone.attr("hidden").toTensor().grad()));
  {
    const torch::NoGradGuard no_grad;
    parameters.values().detach().zero_();
  }
  EXPECT_NEAR(model->Loss(tokens, tokens, ModelMode::kEvaluation).item<double>(), std::log(256), 1e-5);
}

TEST(ScriptModelTest, DropoutActsInTrainingOnly) {
  const std::string path = Saved(MakeModule(), "dropout");
  FlatParameters parameters = FlatParameters::Create(*ManifestOfScript(path), torch::kCPU).value();
  const auto model = MakeLanguageModel(Options(path), Precision::kFp32, parameters);
  const torch::Tensor tokens = torch::randint(256, {3, 16}, torch::kInt64);
  const auto loss = [&](ModelMode mode) { return model->Loss(tokens, tokens, mode).item<double>(); };
  EXPECT_NE(loss(ModelMode::kTraining), loss(ModelMode::kTraining));
  EXPECT_EQ(loss(ModelMode::kEvaluation), loss(ModelMode::kEvaluation));
}

TEST(ScriptModelTest, AReplicaTrainsIt) {
  TorchReplicaOptions options = testing::TinyReplica(testing::TinyDataset("script_data"));
  options.run.model = Options(Saved(MakeModule(), "trains"));
  const auto replica = CreateTorchReplica(options);
  ASSERT_TRUE(replica.ok()) << replica.status();
  double first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    const auto result = (*replica)->InnerStep(1e-2);
    ASSERT_TRUE(result.ok()) << result.status();
    if (step == 0) first = result->loss;
    last = result->loss;
  }
  EXPECT_LT(last, first - 1);
  EXPECT_TRUE((*replica)->Evaluate(2).ok());
  const auto text = (*replica)->Generate({}, {}, [](TokenId) { return true; });
  EXPECT_THAT(std::string(text.message()), HasSubstr("returns a loss"));
}

TEST(ScriptModelTest, NamesTheFileAndWhatIsWrongWithIt) {
  const auto problem = [](const std::string& path) {
    const absl::Status status = ManifestOfScript(path).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("TorchScript file " + path));
    return std::string(status.message());
  };
  EXPECT_TRUE(absl::IsNotFound(ManifestOfScript("/nowhere/model.pt").status()));
  const std::string text = JoinPath(::testing::TempDir(), "text.pt");
  ASSERT_TRUE(WriteFileAtomically(text, "no archive").ok());
  EXPECT_THAT(problem(text), HasSubstr("cannot be read"));
  EXPECT_THAT(problem(Saved(MakeModule("def forward(self, tokens):\n    return tokens\n"), "one")),
              HasSubstr("no method forward(tokens, targets) -> loss"));
  torch::jit::Module half = MakeModule();
  half.register_parameter("half", torch::zeros({2}, torch::kFloat16).requires_grad_(true), false);
  EXPECT_THAT(problem(Saved(half, "half")), HasSubstr("parameter 'half' is of type Half"));
  torch::jit::Module fixed("Model");
  fixed.register_attribute("training", c10::BoolType::get(), true);
  fixed.define("def forward(self, tokens, targets):\n    return torch.zeros([1])\n");
  EXPECT_THAT(problem(Saved(fixed, "fixed")), HasSubstr("no parameter that needs a gradient"));
}

TEST(ScriptModelTest, NamesAFileWithWrongCode) {
  const std::string good = Saved(MakeModule(), "good");
  const std::string path = JoinPath(::testing::TempDir(), "code.pt");
  caffe2::serialize::PyTorchStreamReader reader(good);
  caffe2::serialize::PyTorchStreamWriter writer(path);
  for (const std::string& name : reader.getAllRecords()) {
    if (name == "version" || name.starts_with(".data/")) continue;  // the writer's own
    const auto [data, size] = reader.getRecord(name);
    std::string text(static_cast<const char*>(data.get()), size);
    if (name.ends_with(".py")) text += "\n  def )(\n";
    writer.writeRecord(name, text.data(), text.size());
  }
  writer.writeEndOfFile();
  const absl::Status status = ManifestOfScript(path).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("TorchScript file " + path + ": cannot be read: "));
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
}

TEST(ScriptModelTest, RejectsALossThatIsNotReal) {
  const std::string path = Saved(MakeModule("def forward(self, tokens, targets):\n"
                                            "    return torch.complex(self.table.sum(), torch.zeros([]))\n"),
                                 "complex");
  TorchReplicaOptions options = testing::TinyReplica(testing::TinyDataset("script_complex"));
  options.run.model = Options(path);
  EXPECT_THAT(std::string(CreateTorchReplica(options).status().message()),
              HasSubstr("forward returned a loss of type ComplexFloat; it has to be floating-point"));
}

TEST(ScriptModelTest, SaysInOneLineAndBeforeTheRunWhyForwardFails) {
  const auto fault = [](const char* name, const char* forward) {
    TorchReplicaOptions options = testing::TinyReplica(testing::TinyDataset(name));
    const std::string path = Saved(MakeModule(forward), name);
    options.run.model = Options(path);
    const absl::Status status = CreateTorchReplica(options).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << "before anybody trains it";
    std::string text(status.message());
    EXPECT_THAT(text, AllOf(HasSubstr(path + ": forward"), Not(HasSubstr("\n"))));
    return text;
  };
  EXPECT_THAT(fault("script_small_table",
                    "def forward(self, tokens, targets):\n"
                    "    return torch.embedding(self.table[:20], tokens).sum()\n"),
              AllOf(HasSubstr("index out of range"), HasSubstr("model.torchscript.vocabulary")));
  EXPECT_THAT(fault("script_detached",
                    "def forward(self, tokens, targets):\n"
                    "    return torch.embedding(self.table, tokens).sum().detach()\n"),
              HasSubstr("it was detached"));
}

}  // namespace
}  // namespace atl

// The published models of core/model_presets.h at two layers and with a small vocabulary: exported as folders
// of transformers, loaded there without a warning, and compared by their logits with the models here.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/file.h"
#include "core/hf/layout.h"
#include "core/model_presets.h"
#include "core/model_shape.h"
#include "storage/weights/hf_folder.h"
#include "tests/worker/models/transformers_oracle.h"
#include "worker/torch/flat_parameters.h"
#include "worker/torch/language_model.h"

namespace atl {
namespace {

using testing::AskTransformers;
using testing::ReadFloats;
using testing::TransformersMissing;

constexpr uint32_t kLayers = 2;
constexpr uint32_t kVocabulary = 1000;
constexpr int64_t kTokens = 48;

/// The widths, heads and positions of the published model.
ModelOptions Reduced(ModelOptions model) {
  if (model.llama() != nullptr) {
    model.llama()->layers = kLayers;
    model.llama()->vocabulary = kVocabulary;
  } else {
    model.gpt().layers = kLayers;
    model.gpt().vocabulary = kVocabulary;
  }
  return model;
}

class Architecture {
 public:
  Architecture(std::string_view name, const ModelOptions& model, const std::string& folder)
      : name_(name),
        folder_(JoinPath(folder, name_)),
        options_(model),
        parameters_(FlatParameters::Create(ManifestOf(options_).value(), torch::kCPU).value()),
        model_(MakeLanguageModel(options_, Precision::kFp32, parameters_)),
        tokens_(torch::randint(model.vocabulary(), {1, kTokens}, torch::kInt64)) {
    model_->Initialise(3);
    const torch::NoGradGuard no_grad;
    torch::Tensor values = parameters_.values();
    values.mul_(1.5).add_(torch::randn_like(values), 0.01);  // gains and biases that matter
  }

  const std::string& name() const { return name_; }

  /// What transformers is asked.
  nlohmann::json Export(FileDtype dtype) const {
    HfFolderContents contents;
    contents.layout = HfLayoutOf(options_).value();
    const auto* const values = parameters_.values().data_ptr<float>();
    for (const TensorSlot& slot : parameters_.layout().slots) {
      contents.tensors.emplace_back(values + slot.offset, slot.elements);
    }
    contents.dtype = dtype;
    const std::string folder = JoinPath(folder_, TorchName(dtype));
    EXPECT_TRUE(CreateDirs(folder).ok());
    const auto written = WriteHfFolder(folder, contents);
    EXPECT_TRUE(written.ok()) << written.status();
    const auto* const tokens = tokens_.data_ptr<int64_t>();
    return {{"folder", folder},
            {"logits", folder + ".logits"},
            {"tokens", std::vector(tokens, tokens + kTokens)}};
  }

  /// The largest difference, as a part of the largest logit.
  double Difference(FileDtype dtype) const {
    const torch::NoGradGuard no_grad;
    const torch::Tensor ours = model_->Logits(tokens_, ModelMode::kEvaluation);
    const torch::Tensor theirs =
        ReadFloats(JoinPath(folder_, TorchName(dtype)) + ".logits").view({kTokens, options_.vocabulary()});
    return ((ours - theirs).abs().max() / theirs.abs().max()).item<double>();
  }

 private:
  const std::string name_;
  const std::string folder_;
  const ModelOptions options_;
  FlatParameters parameters_;
  const std::unique_ptr<LanguageModel> model_;
  const torch::Tensor tokens_;
};

TEST(ArchitecturesTest, ExportsLoadWithoutAWarningAndHaveTheSameLogits) {
  const std::string missing = TransformersMissing();
  if (!missing.empty()) GTEST_SKIP() << missing;
  const std::string folder = JoinPath(::testing::TempDir(), "architectures");
  for (const ModelPreset& preset : ModelPresets()) {
    SCOPED_TRACE(preset.name);
    torch::manual_seed(11);
    ASSERT_TRUE(RemoveAll(folder).ok());
    const Architecture model(preset.name, Reduced(preset.model), folder);
    const nlohmann::json cases = {model.Export(FileDtype::kF32), model.Export(FileDtype::kBf16)};
    const nlohmann::json loaded = AskTransformers("pretrained_logits.py", {{"cases", cases}}, folder);
    ASSERT_EQ(loaded.size(), 2U);
    for (const nlohmann::json& one : loaded) EXPECT_EQ(one["complaints"], nlohmann::json::array());
    const double plain = model.Difference(FileDtype::kF32), rounded = model.Difference(FileDtype::kBf16);
    std::printf("%s, %s: logits differ by %.1e, in bfloat16 by %.1e\n", model.name().c_str(),
                loaded[0]["class"].get<std::string>().c_str(), plain, rounded);
    EXPECT_LE(plain, 1e-4);
    EXPECT_LE(rounded, 1e-2);
    EXPECT_GT(rounded, 1e-5) << "nothing was rounded";
  }
  EXPECT_TRUE(RemoveAll(folder).ok());
}

// Half a gigabyte of files: run by its own ctest entry.
TEST(ArchitecturesTest, DISABLED_TheWholeOfGpt2) {
  const std::string missing = TransformersMissing();
  if (!missing.empty()) GTEST_SKIP() << missing;
  const std::string folder = JoinPath(::testing::TempDir(), "architectures_full");
  ASSERT_TRUE(RemoveAll(folder).ok());
  torch::manual_seed(11);
  const Architecture model("gpt2", FindModelPreset("gpt2")->model, folder);
  const nlohmann::json cases = nlohmann::json::array({model.Export(FileDtype::kF32)});
  const nlohmann::json loaded = AskTransformers("pretrained_logits.py", {{"cases", cases}}, folder);
  ASSERT_EQ(loaded.size(), 1U);
  EXPECT_EQ(loaded[0]["complaints"], nlohmann::json::array());
  const double difference = model.Difference(FileDtype::kF32);
  std::printf("gpt2, 124439808 parameters: logits differ by %.1e\n", difference);
  EXPECT_LE(difference, 1e-4);
  EXPECT_TRUE(RemoveAll(folder).ok());
}

}  // namespace
}  // namespace atl

// The published models of core/model_presets.h at two layers and with a small vocabulary: exported as folders
// of transformers, loaded there without a warning, and compared by their logits with the models here. The
// scores of texts come from the same logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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
#include "worker/torch/text_scoring.h"

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
        tokens_(torch::randint(model.vocabulary(), {1, kTokens}, torch::kInt64)) {
    MakeLanguageModel(options_, Precision::kFp32, parameters_)->Initialise(3);
    const torch::NoGradGuard no_grad;
    torch::Tensor values = parameters_.values();
    values.mul_(1.5).add_(torch::randn_like(values), 0.01);  // gains and biases that matter
  }

  const std::string& name() const { return name_; }

  void Export(FileDtype dtype) const {
    HfFolderContents contents;
    contents.layout = HfLayoutOf(options_).value();
    const auto* const values = parameters_.values().data_ptr<float>();
    for (const TensorSlot& slot : parameters_.layout().slots) {
      contents.tensors.emplace_back(values + slot.offset, slot.elements);
    }
    contents.dtype = dtype;
    EXPECT_TRUE(CreateDirs(Folder(dtype)).ok());
    const auto written = WriteHfFolder(Folder(dtype), contents);
    EXPECT_TRUE(written.ok()) << written.status();
  }

  /// What transformers is asked. It computes in float32, also with a folder in bfloat16.
  nlohmann::json Case(FileDtype dtype) const {
    const auto* const tokens = tokens_.data_ptr<int64_t>();
    return {{"folder", Folder(dtype)},
            {"logits", LogitsFile(dtype)},
            {"tokens", std::vector(tokens, tokens + kTokens)}};
  }

  /// Rounds the parameters as an export in bfloat16 rounds them.
  void RoundParameters() {
    const torch::NoGradGuard no_grad;
    torch::Tensor values = parameters_.values();
    values.copy_(values.to(torch::kBFloat16));
  }

  /// The largest difference from what transformers computed with this export, as a part of the largest logit.
  double Difference(FileDtype dtype) {
    const torch::NoGradGuard no_grad;
    const torch::Tensor ours =
        MakeLanguageModel(options_, Precision::kFp32, parameters_)->Logits(tokens_, ModelMode::kEvaluation);
    const torch::Tensor theirs = ReadFloats(LogitsFile(dtype)).view({kTokens, options_.vocabulary()});
    return ((ours - theirs).abs().max() / theirs.abs().max()).item<double>();
  }

  /// The largest difference of a token's log-probability, in nats, when texts of different lengths are scored
  /// together: those that begin with the first tokens.
  double ScoreDifference(FileDtype dtype) {
    const auto* const tokens = tokens_.data_ptr<int64_t>();
    const std::vector<TokenId> text(tokens, tokens + kTokens);
    const auto model = MakeLanguageModel(options_, Precision::kFp32, parameters_);
    const std::vector<ScoreRequest> requests = {{.tokens = std::span(text).first(9)},
                                                {.tokens = text},
                                                {.tokens = std::span(text).first(31), .first = 12},
                                                {.tokens = std::span(text).first(2)}};
    const std::vector<TokenScores> ours =
        *ScoreTexts(*model, requests, {}, options_.vocabulary(), options_.context(), torch::kCPU);
    const torch::Tensor theirs =
        torch::log_softmax(ReadFloats(LogitsFile(dtype)).view({kTokens, options_.vocabulary()}), 1);
    double largest = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(ours[i].log_probabilities.size(), requests[i].tokens.size() - requests[i].first);
      for (size_t at = requests[i].first; at < requests[i].tokens.size(); ++at) {
        const auto expected = theirs[static_cast<int64_t>(at) - 1][tokens[at]].item<double>();
        largest = std::max(largest, std::abs(ours[i].log_probabilities[at - requests[i].first] - expected));
      }
    }
    return largest;
  }

 private:
  std::string Folder(FileDtype dtype) const { return JoinPath(folder_, TorchName(dtype)); }
  std::string LogitsFile(FileDtype dtype) const { return Folder(dtype) + ".logits"; }

  const std::string name_;
  const std::string folder_;
  const ModelOptions options_;
  FlatParameters parameters_;
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
    Architecture model(preset.name, Reduced(preset.model), folder);
    model.Export(FileDtype::kF32);
    model.Export(FileDtype::kBf16);
    const nlohmann::json cases = {model.Case(FileDtype::kF32), model.Case(FileDtype::kBf16)};
    const nlohmann::json loaded = AskTransformers("pretrained_logits.py", {{"cases", cases}}, folder);
    ASSERT_EQ(loaded.size(), cases.size());
    for (const nlohmann::json& one : loaded) EXPECT_EQ(one["complaints"], nlohmann::json::array());
    EXPECT_LE(model.ScoreDifference(FileDtype::kF32), 1e-4);
    const double exact = model.Difference(FileDtype::kF32), lost = model.Difference(FileDtype::kBf16);
    model.RoundParameters();
    const double rounded = model.Difference(FileDtype::kBf16);
    std::printf(
        "%s, %s: logits differ by %.1e, of rounded parameters by %.1e; rounding changes them by %.1e\n",
        model.name().c_str(), loaded[0]["class"].get<std::string>().c_str(), exact, rounded, lost);
    EXPECT_LE(exact, 1e-4);
    // How much the rounding of an export changes logits depends on the model. What is exported does not: it
    // is the model with rounded parameters, and nothing else.
    EXPECT_LE(rounded, 1e-4);
    EXPECT_GT(lost, 1e-3) << "nothing was rounded";
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
  Architecture model("gpt2", FindModelPreset("gpt2")->model, folder);
  model.Export(FileDtype::kF32);
  const nlohmann::json cases = nlohmann::json::array({model.Case(FileDtype::kF32)});
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

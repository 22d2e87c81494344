// Each family of models against tests/reference/families_reference.py, which trains the models of Hugging
// Face's transformers: the same initial weights and tokens, 20 steps of AdamW. Compared are names, shapes and
// order of the tensors, every gradient of the first step, and the loss of every step.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/file.h"
#include "core/model_shape.h"
#include "tests/worker/models/transformers_oracle.h"
#include "worker/torch/flat_parameters.h"
#include "worker/torch/inner_optimizer.h"
#include "worker/torch/language_model.h"

namespace atl {
namespace {

using testing::AskTransformers;
using testing::ReadFloats;
using testing::TransformersMissing;
using testing::WriteTensor;

constexpr int kSteps = 20;
constexpr int64_t kBatches = 4;
constexpr int64_t kSequences = 3;
constexpr double kTolerance = 1e-4;

struct Case {
  std::string name;
  ModelOptions options;
  nlohmann::json config;  // the same in transformers
  /// The token that ends a document, none of which sees another. Negative: a row is one text.
  int64_t end_of_text = -1;
};

Case WithDocuments(const char* name, Case made) {
  made.name = name;
  made.end_of_text = 5;
  return made;
}

nlohmann::json LlamaConfig(const char* model_type, const LlamaOptions& options) {
  nlohmann::json rope = {{"rope_type", "default"}, {"rope_theta", options.rope_theta}};
  if (const RopeScaling& scaling = options.rope_scaling; scaling.factor != 1) {
    rope.update({{"rope_type", "llama3"},
                 {"factor", scaling.factor},
                 {"low_freq_factor", scaling.low_freq_factor},
                 {"high_freq_factor", scaling.high_freq_factor},
                 {"original_max_position_embeddings", scaling.original_context}});
  }
  return {{"model_type", model_type},
          {"vocab_size", options.vocabulary},
          {"hidden_size", options.width},
          {"intermediate_size", options.intermediate},
          {"num_hidden_layers", options.layers},
          {"num_attention_heads", options.heads},
          {"num_key_value_heads", options.key_value_heads()},
          {"head_dim", options.head_width()},
          {"max_position_embeddings", options.context},
          {"rms_norm_eps", options.rms_norm_epsilon},
          {"rope_parameters", rope},
          {"tie_word_embeddings", options.tied_embeddings}};
}

Case LlamaCase(const char* name, const char* model_type, const LlamaOptions& options) {
  return {name, ModelOptions(options), LlamaConfig(model_type, options)};
}

Case Gpt2Case(const char* name, const GptOptions& options) {
  return {name,
          ModelOptions(options),
          {{"model_type", "gpt2"},
           {"vocab_size", options.vocabulary},
           {"n_embd", options.width},
           {"n_layer", options.layers},
           {"n_head", options.heads},
           {"n_positions", options.context},
           {"tie_word_embeddings", options.tied_embeddings},
           {"attn_pdrop", 0.0},
           {"embd_pdrop", 0.0},
           {"resid_pdrop", 0.0}}};
}

std::vector<Case> Cases() {
  const LlamaOptions llama = {.layers = 2,
                              .heads = 4,
                              .kv_heads = 2,
                              .width = 64,
                              .intermediate = 96,
                              .context = 32,
                              .vocabulary = 97};
  LlamaOptions scaled = llama;
  scaled.rope_theta = 500;
  // Of the wavelengths 6, 14, 30 and more, the first is kept and the second is a mean.
  scaled.rope_scaling = {.factor = 8, .low_freq_factor = 1, .high_freq_factor = 2, .original_context = 16};
  LlamaOptions qwen2 = llama;
  qwen2.kv_heads = 1;
  qwen2.tied_embeddings = false;
  qwen2.qkv_bias = true;
  LlamaOptions qwen3 = llama;
  qwen3.head_dim = 24;  // 4 heads of it are not the width
  qwen3.rope_theta = 1e6;
  qwen3.rms_norm_epsilon = 1e-6;
  qwen3.qk_norm = true;
  const GptOptions gpt = {.layers = 2, .heads = 4, .width = 64, .context = 32, .vocabulary = 97};
  GptOptions untied = gpt;
  untied.tied_embeddings = false;
  return {Gpt2Case("gpt2", gpt),
          Gpt2Case("gpt2 with a head of its own", untied),
          LlamaCase("llama", "llama", llama),
          LlamaCase("scaled", "llama", scaled),
          LlamaCase("qwen2", "qwen2", qwen2),
          LlamaCase("qwen3", "qwen3", qwen3),
          WithDocuments("gpt2 with documents", Gpt2Case("", gpt)),
          WithDocuments("llama with documents", LlamaCase("", "llama", llama)),
          WithDocuments("qwen3 with documents", LlamaCase("", "qwen3", qwen3))};
}

InnerOptions Inner() {
  InnerOptions inner;
  inner.learning_rate = 3e-3;
  inner.precision = Precision::kFp32;
  return inner;
}

/// A model, and what it is trained on.
class Trained {
 public:
  Trained(const Case& made, const std::string& folder)
      : folder_(folder),
        manifest_(ManifestOf(made.options).value()),
        parameters_(FlatParameters::Create(manifest_, torch::kCPU).value()),
        model_(MakeLanguageModel(made.options, Precision::kFp32, parameters_)),
        tokens_(torch::randint(made.options.vocabulary(), {kBatches, kSequences, made.options.context() + 1},
                               torch::kInt64)),
        config_(made.config),
        end_of_text_(made.end_of_text) {
    if (end_of_text_ >= 0) AddEnds();
    model_->Initialise(3);
    Spread();
    WriteTensor(Path("initial"), torch::cat(Flat([](const torch::Tensor& view) { return view; })));
    WriteTensor(Path("tokens"), tokens_);
  }

  const Manifest& manifest() const { return manifest_; }
  const std::vector<double>& losses() const { return losses_; }
  /// Of the first step.
  const std::vector<torch::Tensor>& gradients() const { return gradients_; }
  torch::Tensor ExpectedGradients() const { return ReadFloats(Path("gradients")); }

  nlohmann::json Options() const {
    const InnerOptions inner = Inner();
    return {{"config", config_},
            {"context", tokens_.size(2) - 1},
            {"initial", Path("initial")},
            {"tokens", Path("tokens")},
            {"gradients", Path("gradients")},
            {"end_of_text", end_of_text_},
            {"sequences", kSequences},
            {"steps", kSteps},
            {"learning_rate", inner.learning_rate},
            {"beta1", inner.beta1},
            {"beta2", inner.beta2},
            {"epsilon", inner.epsilon},
            {"weight_decay", inner.weight_decay},
            {"clip_norm", inner.clip_norm}};
  }

  void Train() {
    InnerOptimizer optimizer(Inner(), parameters_);
    for (int step = 0; step < kSteps; ++step) {
      const torch::Tensor window = tokens_[step % kBatches];
      const int64_t context = window.size(1) - 1;
      const torch::Tensor loss = LossOf(window.narrow(1, 0, context), window.narrow(1, 1, context));
      loss.backward();
      losses_.push_back(loss.item<double>());
      if (step == 0) gradients_ = Flat([](const torch::Tensor& view) { return view.grad().clone(); });
      optimizer.Step(Inner().learning_rate, /*scale=*/1, optimizer.GradientNorm(1));
    }
  }

 private:
  std::string Path(const std::string& file) const { return JoinPath(folder_, file); }

  /// About one in six tokens.
  void AddEnds() { tokens_.masked_fill_(torch::rand(tokens_.sizes()).lt(0.16), end_of_text_); }

  torch::Tensor LossOf(const torch::Tensor& inputs, const torch::Tensor& targets) const {
    if (end_of_text_ < 0) return model_->Loss(inputs, targets, ModelMode::kTraining);
    const torch::Tensor ends = inputs.eq(end_of_text_);
    const torch::Tensor documents = ends.to(torch::kInt64).cumsum(1) - ends.to(torch::kInt64);
    torch::Tensor positions = torch::zeros_like(documents);
    for (int64_t t = 1; t < inputs.size(1); ++t) {
      positions.select(1, t).copy_((positions.select(1, t - 1) + 1) *
                                   documents.select(1, t).eq(documents.select(1, t - 1)));
    }
    return model_->LossOfDocuments(inputs, targets.masked_fill(ends, -100), {documents, positions},
                                   ModelMode::kTraining);
  }

  /// Large enough that attention is far from uniform, with gains and biases that matter.
  void Spread() {
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < manifest_.tensors.size(); ++i) {
      torch::Tensor view = parameters_.view(i);
      if (view.dim() > 1) {
        view.mul_(6);
      } else {
        view.add_(torch::randn_like(view), 0.2);
      }
    }
  }

  template <typename Function>
  std::vector<torch::Tensor> Flat(const Function& of) const {
    std::vector<torch::Tensor> all;
    for (size_t i = 0; i < manifest_.tensors.size(); ++i)
      all.push_back(of(parameters_.view(i)).detach().flatten());
    return all;
  }

  const std::string folder_;
  const Manifest manifest_;
  FlatParameters parameters_;
  const std::unique_ptr<LanguageModel> model_;
  const torch::Tensor tokens_;
  const nlohmann::json config_;
  const int64_t end_of_text_;
  std::vector<double> losses_;
  std::vector<torch::Tensor> gradients_;
};

void ExpectSameTensors(const Manifest& ours, const nlohmann::json& theirs) {
  ASSERT_EQ(ours.tensors.size(), theirs.size());
  for (size_t i = 0; i < ours.tensors.size(); ++i) {
    EXPECT_EQ(ours.tensors[i].name, theirs[i][0].get<std::string>());
    EXPECT_EQ(ours.tensors[i].shape, theirs[i][1].get<std::vector<int64_t>>()) << ours.tensors[i].name;
  }
}

void ExpectSameGradients(const Trained& trained) {
  const torch::Tensor expected = trained.ExpectedGradients();
  int64_t offset = 0;
  double worst = 0;
  for (size_t i = 0; i < trained.gradients().size(); ++i) {
    const torch::Tensor& ours = trained.gradients()[i];
    ASSERT_LE(offset + ours.numel(), expected.numel());
    const torch::Tensor theirs = expected.narrow(0, offset, ours.numel());
    offset += ours.numel();
    const double norm = theirs.norm().item<double>();
    const double error = (ours - theirs).norm().item<double>();
    EXPECT_GT(norm, 0) << trained.manifest().tensors[i].name;
    EXPECT_LE(error, kTolerance * norm) << trained.manifest().tensors[i].name;
    worst = std::max(worst, error / norm);
  }
  EXPECT_EQ(offset, expected.numel());
  std::printf("largest relative error of a gradient: %.1e\n", worst);
}

void ExpectSameLosses(const std::vector<double>& ours, const nlohmann::json& theirs) {
  ASSERT_EQ(ours.size(), theirs.size());
  double worst = 0;
  for (size_t step = 0; step < ours.size(); ++step) {
    const double expected = theirs[step].get<double>();
    EXPECT_NEAR(ours[step], expected, kTolerance * expected) << "step " << step;
    worst = std::max(worst, std::abs(ours[step] - expected) / expected);
  }
  std::printf("loss %.4f to %.4f, largest relative error %.1e\n", ours.front(), ours.back(), worst);
  // The steps moved the parameters by far more than they may differ.
  EXPECT_LT(ours.back(), 0.9 * ours.front());
}

TEST(FamiliesReferenceTest, TrainsAsTransformers) {
  const std::string missing = TransformersMissing();
  if (!missing.empty()) GTEST_SKIP() << missing;
  const std::string folder = JoinPath(::testing::TempDir(), "families_reference");
  ASSERT_TRUE(RemoveAll(folder).ok());
  torch::manual_seed(11);
  std::vector<std::unique_ptr<Trained>> trained;
  nlohmann::json cases = nlohmann::json::array();
  for (const Case& made : Cases()) {
    ASSERT_TRUE(CreateDirs(JoinPath(folder, made.name)).ok());
    trained.push_back(std::make_unique<Trained>(made, JoinPath(folder, made.name)));
    cases.push_back(trained.back()->Options());
  }
  const nlohmann::json theirs = AskTransformers("families_reference.py", {{"cases", cases}}, folder);
  ASSERT_EQ(theirs.size(), trained.size());
  for (size_t i = 0; i < trained.size(); ++i) {
    SCOPED_TRACE(Cases()[i].name);
    std::printf("%s: ", Cases()[i].name.c_str());
    trained[i]->Train();
    ExpectSameTensors(trained[i]->manifest(), theirs[i]["tensors"]);
    ExpectSameGradients(*trained[i]);
    ExpectSameLosses(trained[i]->losses(), theirs[i]["losses"]);
  }
}

}  // namespace
}  // namespace atl

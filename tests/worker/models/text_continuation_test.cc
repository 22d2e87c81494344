// Reading a text with a cache, position by position, against reading all of it each time. For every family.
#include "worker/torch/text_continuation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model_shape.h"

namespace atl {
namespace {

constexpr uint32_t kContext = 16;
constexpr int64_t kVocabulary = 101;
constexpr uint32_t kLayers = 2;

struct Family {
  std::string name;
  ModelOptions model;
  uint32_t head_width = 8;
};

std::vector<Family> Families() {
  GptOptions gpt = {
      .layers = kLayers, .heads = 4, .width = 32, .context = kContext, .vocabulary = kVocabulary};
  GptOptions plain = gpt;
  plain.bias = false;
  plain.tied_embeddings = false;
  LlamaOptions llama = {.layers = kLayers,
                        .heads = 4,
                        .kv_heads = 2,
                        .width = 32,
                        .intermediate = 48,
                        .context = kContext,
                        .vocabulary = kVocabulary};
  LlamaOptions full = llama;
  full.head_dim = 12;
  full.qkv_bias = true;
  full.qk_norm = true;
  full.rope_scaling = {.factor = 8, .original_context = 8};
  return {{"gpt", ModelOptions(gpt)},
          {"gpt without biases", ModelOptions(plain)},
          {"llama", ModelOptions(llama)},
          {"llama with everything", ModelOptions(full), full.head_dim}};
}

class Model {
 public:
  // Of the matrices, which have a deviation of 0.02. With it, a map of 32 values keeps their size: queries
  // and keys have values of about 1, so that attention is far from uniform and its scores are a few units.
  static constexpr double kScale = 9;

  Model(const ModelOptions& options, Precision precision)
      : parameters_(FlatParameters::Create(ManifestOf(options).value(), torch::kCPU).value()),
        model_(MakeLanguageModel(options, precision, parameters_)) {
    model_->Initialise(5);
    const torch::NoGradGuard no_grad;
    const Manifest& manifest = parameters_.manifest();
    for (size_t i = 0; i < manifest.tensors.size(); ++i) {
      if (manifest.tensors[i].shape.size() > 1) parameters_.view(i).mul_(kScale);
    }
  }

  const LanguageModel& operator*() const { return *model_; }

  /// Of the token after the text, read from the beginning.
  torch::Tensor NextLogits(const std::vector<int64_t>& text) const {
    const torch::NoGradGuard no_grad;
    return model_->Logits(torch::tensor(text).unsqueeze(0), ModelMode::kEvaluation)[-1];
  }

 private:
  FlatParameters parameters_;
  const std::unique_ptr<LanguageModel> model_;
};

std::vector<int64_t> Text(size_t length) {
  std::vector<int64_t> text;
  for (size_t i = 0; i < length; ++i) text.push_back(static_cast<int64_t>(i * i * 7 + i * 3) % kVocabulary);
  return text;
}

double Difference(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

/// How far logits in bfloat16 may be from those in float32, as a part of their norm.
///
/// bfloat16 keeps 8 bits, so one rounding changes a value by at most u = 2^-8 of it. The path through a block
/// has at most 17 roundings: the input, the matrix and the result of the maps before and after attention (6),
/// normed and turned queries and keys (2), the weights of attention and its result (2); input, matrix and
/// result of the MLP's two maps (6), and what is between them (1). A rounding of a score s changes the
/// weights by u |s|, and so counts as |s| of the others; |s| is at most the root of the head's width for
/// queries and keys with values of size 1. The output head has 3. The norms and the residual stream are in
/// float32, and pass relative errors on. Roundings are independent, so the squares of their errors add up.
double Bfloat16Bound(const Family& family) {
  constexpr double kUnit = 1.0 / 256;
  return kUnit * std::sqrt(kLayers * (17.0 + family.head_width) + 3);
}

TEST(TextContinuationTest, ReadsWhatTheModelReads) {
  for (const Family& family : Families()) {
    SCOPED_TRACE(family.name);
    const Model model(family.model, Precision::kFp32);
    std::vector<int64_t> text = Text(5);
    TextContinuation continuation(*model, text, kContext, 8);
    for (const int64_t token : Text(8)) {
      const torch::Tensor logits = continuation.NextLogits(torch::kCPU);
      ASSERT_EQ(logits.sizes(), (std::vector<int64_t>{kVocabulary}));
      EXPECT_EQ(logits.scalar_type(), torch::kFloat32);
      EXPECT_LT(Difference(logits, model.NextLogits(text)), 1e-5) << text.size() << " tokens";
      text.push_back(token);
      continuation.Append(static_cast<TokenId>(token));
    }
  }
}

// Two computations in bfloat16 round differently, so both are compared with float32.
TEST(TextContinuationTest, Bfloat16IsAsNearToFloat32AsTheWholeText) {
  for (const Family& family : Families()) {
    SCOPED_TRACE(family.name);
    const Model exact(family.model, Precision::kFp32), rounded(family.model, Precision::kBf16);
    const double bound = Bfloat16Bound(family);
    std::vector<int64_t> text = Text(5);
    TextContinuation continuation(*rounded, text, kContext, 8);
    for (const int64_t token : Text(8)) {
      const torch::Tensor expected = exact.NextLogits(text);
      const torch::Tensor whole = rounded.NextLogits(text), cached = continuation.NextLogits(torch::kCPU);
      EXPECT_EQ(cached.scalar_type(), torch::kFloat32);
      EXPECT_LT(Difference(whole, expected), bound) << text.size() << " tokens";
      EXPECT_LT(Difference(cached, expected), bound) << text.size() << " tokens";
      EXPECT_GT(Difference(cached, expected), 1e-4) << "nothing was rounded";
      text.push_back(token);
      continuation.Append(static_cast<TokenId>(token));
    }
  }
}

// Of a text that is longer than the context, the model sees the newest tokens: from half a context to all of
// it.
TEST(TextContinuationTest, AFullContextGoesOnWithItsNewestHalf) {
  for (const Family& family : Families()) {
    SCOPED_TRACE(family.name);
    const Model model(family.model, Precision::kFp32);
    std::vector<int64_t> text = Text(20);
    TextContinuation continuation(*model, text, kContext, 100);
    size_t seen = kContext;
    for (const int64_t token : Text(2 * kContext)) {
      const std::vector<int64_t> window(text.end() - static_cast<ptrdiff_t>(seen), text.end());
      EXPECT_LT(Difference(continuation.NextLogits(torch::kCPU), model.NextLogits(window)), 1e-5)
          << text.size() << " tokens";
      text.push_back(token);
      continuation.Append(static_cast<TokenId>(token));
      seen = seen == kContext ? kContext / 2 : seen + 1;
    }
  }
}

}  // namespace
}  // namespace atl

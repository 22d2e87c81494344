// Reading a text with a cache, position by position, against reading all of it each time. For every family.
#include "worker/torch/text_continuation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/model_shape.h"

namespace atl {
namespace {

constexpr uint32_t kContext = 16;
constexpr int64_t kVocabulary = 101;

struct Family {
  std::string name;
  ModelOptions model;
};

std::vector<Family> Families() {
  GptOptions gpt = {.layers = 2, .heads = 4, .width = 32, .context = kContext, .vocabulary = kVocabulary};
  GptOptions plain = gpt;
  plain.bias = false;
  plain.tied_embeddings = false;
  LlamaOptions llama = {.layers = 2,
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
          {"llama with everything", ModelOptions(full)}};
}

class Model {
 public:
  Model(const ModelOptions& options, Precision precision)
      : parameters_(FlatParameters::Create(ManifestOf(options).value(), torch::kCPU).value()),
        model_(MakeLanguageModel(options, precision, parameters_)) {
    model_->Initialise(5);
    const torch::NoGradGuard no_grad;
    torch::Tensor values = parameters_.values();
    values.mul_(4);  // attention that is far from uniform
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

TEST(TextContinuationTest, ReadsWhatTheModelReads) {
  for (const Family& family : Families()) {
    for (const auto& [precision, bound] :
         {std::pair(Precision::kFp32, 1e-5), std::pair(Precision::kBf16, 6e-2)}) {
      SCOPED_TRACE(family.name);
      const Model model(family.model, precision);
      std::vector<int64_t> text = Text(5);
      TextContinuation continuation(*model, text, kContext, 8);
      for (const int64_t token : Text(8)) {
        const torch::Tensor logits = continuation.NextLogits(torch::kCPU);
        ASSERT_EQ(logits.sizes(), (std::vector<int64_t>{kVocabulary}));
        EXPECT_EQ(logits.scalar_type(), torch::kFloat32);
        EXPECT_LT(Difference(logits, model.NextLogits(text)), bound) << text.size() << " tokens";
        text.push_back(token);
        continuation.Append(static_cast<TokenId>(token));
      }
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

#include "core/hf/gpt2_layout.h"

#include <algorithm>

#include "core/gpt_shape.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::IsEmpty;

GptOptions Small() {
  GptOptions options;
  options.layers = 2;
  options.heads = 2;
  options.width = 8;
  options.context = 16;
  options.vocabulary = 32;
  return options;
}

TEST(Gpt2Layout, HasTheTensorsOfTheRun) {
  for (const bool bias : {true, false}) {
    GptOptions options = Small();
    options.bias = bias;
    const HfLayout layout = Gpt2Layout(options);
    const Manifest manifest = GptManifest(options);
    ASSERT_EQ(layout.tensors.size(), manifest.tensors.size());
    for (size_t i = 0; i < layout.tensors.size(); ++i) {
      EXPECT_EQ(layout.tensors[i], (HfTensor{manifest.tensors[i].name, manifest.tensors[i].shape}));
    }
  }
}

// transformers has no GPT-2 without biases.
TEST(Gpt2Layout, MissingBiasesAreZeros) {
  GptOptions options = Small();
  EXPECT_THAT(Gpt2Layout(options).zeros, IsEmpty());
  const size_t with_biases = GptManifest(options).tensors.size();
  options.bias = false;
  const HfLayout layout = Gpt2Layout(options);
  EXPECT_EQ(layout.tensors.size() + layout.zeros.size(), with_biases);
  EXPECT_EQ(std::ranges::count(layout.zeros, HfTensor{"transformer.h.1.attn.c_attn.bias", {24}}), 1);
  EXPECT_EQ(std::ranges::count(layout.zeros, HfTensor{"transformer.ln_f.bias", {8}}), 1);
}

TEST(Gpt2Layout, AHeadOfItsOwnIsATensor) {
  GptOptions options = Small();
  ASSERT_TRUE(Gpt2Layout(options).tied.has_value());
  EXPECT_EQ(Gpt2Layout(options).tied->name, "lm_head.weight");
  EXPECT_EQ(Gpt2Layout(options).tied->tensor, 0u);
  options.tied_embeddings = false;
  EXPECT_FALSE(Gpt2Layout(options).tied.has_value());
  EXPECT_EQ(Gpt2Layout(options).tensors.back(), (HfTensor{"lm_head.weight", {32, 8}}));
}

TEST(HfLayout, OnlyFamiliesOfTransformersHaveOne) {
  const auto layout = HfLayoutOf(ModelOptions(Small()));
  ASSERT_TRUE(layout.has_value());
  EXPECT_EQ(layout->architecture, "GPT2LMHeadModel");
  EXPECT_FALSE(HfLayoutOf(ModelOptions(ExternalOptions())).has_value());
}

}  // namespace
}  // namespace atl

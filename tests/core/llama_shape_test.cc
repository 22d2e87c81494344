#include "core/llama_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

LlamaOptions Small() {
  return {.layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 6,
          .width = 16,
          .intermediate = 40,
          .context = 32,
          .vocabulary = 256};
}

std::vector<std::string> Names(const LlamaOptions& options) {
  std::vector<std::string> names;
  for (const TensorSpec& tensor : LlamaManifest(options).tensors) names.push_back(tensor.name);
  return names;
}

TEST(LlamaShapeTest, NamesAndShapesAreHuggingFaces) {
  LlamaOptions options = Small();
  options.layers = 1;
  EXPECT_THAT(Names(options),
              ElementsAre("model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight",
                          "model.layers.0.self_attn.k_proj.weight", "model.layers.0.self_attn.v_proj.weight",
                          "model.layers.0.self_attn.o_proj.weight", "model.layers.0.mlp.gate_proj.weight",
                          "model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.down_proj.weight",
                          "model.layers.0.input_layernorm.weight",
                          "model.layers.0.post_attention_layernorm.weight", "model.norm.weight"));
  const Manifest manifest = LlamaManifest(options);
  const auto shape = [&](size_t i) { return manifest.tensors[i].shape; };
  EXPECT_THAT(shape(0), ElementsAre(256, 16));
  EXPECT_THAT(shape(1), ElementsAre(24, 16)) << "outputs first; 4 heads of 6";
  EXPECT_THAT(shape(2), ElementsAre(12, 16)) << "2 heads of keys";
  EXPECT_THAT(shape(4), ElementsAre(16, 24));
  EXPECT_THAT(shape(5), ElementsAre(40, 16));
  EXPECT_THAT(shape(7), ElementsAre(16, 40));
  EXPECT_TRUE(manifest.tensors[0].embedding);
  EXPECT_FALSE(manifest.tensors[1].embedding);
  options.tied_embeddings = false;
  EXPECT_EQ(Names(options).back(), "lm_head.weight");
}

TEST(LlamaShapeTest, HeadsHaveDefaults) {
  LlamaOptions options = Small();
  options.kv_heads = 0;
  options.head_dim = 0;
  const Manifest manifest = LlamaManifest(options);
  EXPECT_THAT(manifest.tensors[1].shape, ElementsAre(16, 16));
  EXPECT_THAT(manifest.tensors[2].shape, ElementsAre(16, 16));
  LlamaOptions explicit_ones = options;
  explicit_ones.kv_heads = 4;
  explicit_ones.head_dim = 4;
  const auto fixed = LlamaShape(options).FixedSettings();
  const auto same = LlamaShape(explicit_ones).FixedSettings();
  for (size_t i = 0; i < fixed.size(); ++i) EXPECT_EQ(fixed[i].value, same[i].value) << fixed[i].setting;
}

// Every index names the tensor it is called after, for each combination of options.
TEST(LlamaShapeTest, IndicesPointAtTheirTensors) {
  for (const int bits : {0, 1, 2, 3, 4, 5, 6, 7}) {
    LlamaOptions options = Small();
    options.qkv_bias = (bits & 1) != 0;
    options.qk_norm = (bits & 2) != 0;
    options.tied_embeddings = (bits & 4) != 0;
    const std::vector<std::string> names = Names(options);
    const LlamaTensorIndex index(options);
    const LlamaTensorIndex::Block block = index.block(1);
    std::map<size_t, std::string> expected = {{block.q, "self_attn.q_proj.weight"},
                                              {block.k, "self_attn.k_proj.weight"},
                                              {block.v, "self_attn.v_proj.weight"},
                                              {block.o, "self_attn.o_proj.weight"},
                                              {block.gate, "mlp.gate_proj.weight"},
                                              {block.up, "mlp.up_proj.weight"},
                                              {block.down, "mlp.down_proj.weight"},
                                              {block.input_norm, "input_layernorm.weight"},
                                              {block.post_attention_norm, "post_attention_layernorm.weight"}};
    if (options.qkv_bias) {
      expected[block.q_bias] = "self_attn.q_proj.bias";
      expected[block.k_bias] = "self_attn.k_proj.bias";
      expected[block.v_bias] = "self_attn.v_proj.bias";
    }
    if (options.qk_norm) {
      expected[block.q_norm] = "self_attn.q_norm.weight";
      expected[block.k_norm] = "self_attn.k_norm.weight";
    }
    for (const auto& [i, name] : expected) EXPECT_EQ(names.at(i), "model.layers.1." + name) << bits;
    EXPECT_EQ(names.at(index.embedding), "model.embed_tokens.weight");
    EXPECT_EQ(names.at(index.norm), "model.norm.weight") << bits;
    EXPECT_EQ(names.at(index.lm_head),
              options.tied_embeddings ? "model.embed_tokens.weight" : "lm_head.weight");
    EXPECT_EQ(names.size(), index.norm + (options.tied_embeddings ? 1 : 2));
  }
}

TEST(LlamaShapeTest, CountsTheOperationsOfAToken) {
  // By hand: a block has 16 * (24 + 12 + 12 + 24 + 3 * 40) weights of matrix products, the head 256 * 16.
  // Attention: 12 * 2 layers * 24 * 32.
  EXPECT_DOUBLE_EQ(LlamaShape(Small()).TrainingFlopsPerToken(), 6.0 * (2 * 3072 + 4096) + 18432);
  EXPECT_EQ(LlamaShape(Small()).blocks(), 2U);
}

TEST(LlamaShapeTest, EstimatesActivations) {
  // By hand, at 16 bits: norms 2 * (8 + 2) * 16, attention 2 * (2 * 24 + 2 * 12 + 4 * 32), the MLP 8 * 40; at
  // 32: 2 * (8 + 4) * 16, 4 * 200 and 16 * 40. Then 8 * 256 for the logits.
  EXPECT_EQ(LlamaShape(Small()).ActivationBytesPerToken(Precision::kBf16, Activations::kKept),
            2U * (320 + 400 + 320) + 2048);
  EXPECT_EQ(LlamaShape(Small()).ActivationBytesPerToken(Precision::kFp32, Activations::kKept),
            2U * (384 + 800 + 640) + 2048);
  LlamaOptions with_norms = Small();
  with_norms.qk_norm = true;
  EXPECT_EQ(LlamaShape(with_norms).ActivationBytesPerToken(Precision::kBf16, Activations::kKept),
            2U * (320 + 400 + 320 + 8 * 36) + 2048);
}

void ExpectProblem(const LlamaOptions& options, const std::string& setting, const std::string& text) {
  const auto problem = LlamaShape(options).FindProblem();
  ASSERT_TRUE(problem.has_value()) << setting;
  EXPECT_EQ(problem->setting, setting);
  EXPECT_THAT(problem->text, HasSubstr(text));
}

TEST(LlamaShapeTest, NamesWhatIsWrong) {
  EXPECT_FALSE(LlamaShape(Small()).FindProblem().has_value());
  LlamaOptions options = Small();
  options.kv_heads = 3;
  ExpectProblem(options, "kv_heads", "3 does not divide model.llama.heads, which is 4");
  options.kv_heads = 8;
  ExpectProblem(options, "kv_heads", "8 does not divide model.llama.heads, which is 4");
  options = Small();
  options.head_dim = 7;
  ExpectProblem(options, "head_dim", "7 is odd");
  options = Small();
  options.head_dim = 0;
  options.width = 18;
  ExpectProblem(options, "heads",
                "4 does not divide model.llama.width, which is 18; set model.llama.head_dim");
  options.width = 20;
  ExpectProblem(options, "heads", "the width of a head is model.llama.width / 4 = 5");
  options = Small();
  options.rope_scaling = {.factor = 8, .low_freq_factor = 4, .high_freq_factor = 4};
  ExpectProblem(options, "rope_scaling.high_freq_factor",
                "4 is not above model.llama.rope_scaling.low_freq_factor, which is 4");
  options.rope_scaling.factor = 1;
  EXPECT_FALSE(LlamaShape(options).FindProblem().has_value()) << "nothing is scaled";
}

TEST(LlamaShapeTest, EverySettingIsFixed) {
  const auto text = [](const LlamaOptions& options) {
    std::string all;
    for (const auto& [setting, value] : LlamaShape(options).FixedSettings())
      all += setting + "=" + value + " ";
    return all;
  };
  LlamaOptions other = Small();
  other.rope_theta = 10000.001;
  EXPECT_NE(text(other), text(Small())) << "to the last digit";
  other = Small();
  other.rope_scaling.original_context = 4096;
  EXPECT_NE(text(other), text(Small()));
}

}  // namespace
}  // namespace atl

#include "core/hf/llama_layout.h"

#include "absl/strings/str_replace.h"
#include "core/hf/config_file.h"
#include "core/llama_shape.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

LlamaOptions Small() {
  LlamaOptions options;
  options.layers = 2;
  options.heads = 4;
  options.kv_heads = 2;
  options.width = 32;
  options.intermediate = 48;
  options.context = 64;
  options.vocabulary = 256;
  options.rms_norm_epsilon = 1e-6;
  return options;
}

std::string Problem(const std::string& text, const LlamaOptions& options) {
  return std::string(CheckHfConfig(text, *LlamaLayout(options), "config.json").message());
}

/// What transformers 5 writes, with these fields besides.
std::string Config(const std::string& more) {
  return R"({"hidden_act": "silu", "hidden_size": 32, "intermediate_size": 48, "max_position_embeddings": 2048,
    "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 2, "rms_norm_eps": 1e-06,
    "tie_word_embeddings": true, "vocab_size": 256, )" +
         more + "}";
}

TEST(LlamaLayout, HasTheTensorsOfTheRun) {
  const HfLayout layout = LlamaLayout(Small()).value();
  const Manifest manifest = LlamaManifest(Small());
  ASSERT_EQ(layout.tensors.size(), manifest.tensors.size());
  for (size_t i = 0; i < layout.tensors.size(); ++i) {
    EXPECT_EQ(layout.tensors[i], (HfTensor{manifest.tensors[i].name, manifest.tensors[i].shape}));
  }
  EXPECT_THAT(layout.ignored, Contains("model.layers.1.self_attn.rotary_emb.inv_freq"));
  EXPECT_EQ(layout.tied->tensor, 0u);
}

TEST(LlamaLayout, TellsTheFamiliesApart) {
  EXPECT_EQ(LlamaLayout(Small())->architecture, "LlamaForCausalLM");
  LlamaOptions qwen2 = Small();
  qwen2.qkv_bias = true;
  EXPECT_EQ(LlamaLayout(qwen2)->model_type, "qwen2");
  LlamaOptions qwen3 = Small();
  qwen3.qk_norm = true;
  EXPECT_EQ(LlamaLayout(qwen3)->architecture, "Qwen3ForCausalLM");
  qwen3.qkv_bias = true;
  EXPECT_FALSE(LlamaLayout(qwen3).has_value());
  EXPECT_THAT(Problem(Config(R"("model_type": "qwen2")"), Small()),
              HasSubstr("model_type is \"qwen2\"; the run's model is a 'llama'"));
}

TEST(LlamaLayout, ReadsBothFormsOfRotaryPositions) {
  LlamaOptions options = Small();
  options.rope_theta = 5e5;
  const char* const older = R"("model_type": "llama", "rope_theta": 500000.0, "rope_scaling": null)";
  const char* const newer =
      R"("model_type": "llama", "rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"})";
  for (const char* const form : {older, newer}) {
    EXPECT_EQ(Problem(Config(form), options), "");
    EXPECT_THAT(Problem(Config(form), Small()),
                HasSubstr("rope_theta is 500000.0; the run has 10000.0 (model.llama.rope_theta)"));
  }
  options.rope_scaling.factor = 32;
  EXPECT_THAT(Problem(Config(older), options),
              AllOf(HasSubstr("rope_scaling.rope_type is missing, which means null; the run has \"llama3\""),
                    HasSubstr("rope_scaling.factor is missing; the run has 32.0")));
  const char* const scaled =
      R"({"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0, "rope_type": "llama3",
          "original_max_position_embeddings": 8192, "rope_theta": 500000.0})";
  EXPECT_EQ(Problem(Config(std::string(R"("model_type": "llama", "rope_parameters": )") + scaled), options),
            "");
  EXPECT_EQ(
      Problem(Config(std::string(R"("model_type": "llama", "rope_theta": 5e5, "rope_scaling": )") + scaled),
              options),
      "");
}

TEST(LlamaLayout, ARunMayUseFewerPositions) {
  LlamaOptions options = Small();
  const std::string config = Config(R"("model_type": "llama")");
  options.context = 2048;
  EXPECT_EQ(Problem(config, options), "");
  options.context = 2049;
  EXPECT_EQ(
      Problem(config, options),
      "config.json: max_position_embeddings is 2048; the run needs at least 2049 (model.llama.context)");
}

TEST(LlamaLayout, HeadsMayHaveTheirOwnWidth) {
  LlamaOptions options = Small();
  EXPECT_EQ(Problem(Config(R"("model_type": "llama", "head_dim": null)"), options), "");
  EXPECT_EQ(Problem(Config(R"("model_type": "llama", "head_dim": 8)"), options), "");
  options.head_dim = 16;
  EXPECT_EQ(Problem(Config(R"("model_type": "llama", "head_dim": 16)"), options), "");
  EXPECT_EQ(Problem(Config(R"("model_type": "llama")"), options),
            "config.json: head_dim is missing, which means 8; the run has 16 (model.llama.head_dim)");
}

// What Qwen2Config and Qwen3Config take for a field that is missing differs from LlamaConfig.
TEST(LlamaLayout, MissingSizesHaveTheDefaultsOfTheFamily) {
  LlamaOptions options = Small();
  options.kv_heads = 0;
  const std::string config =
      absl::StrReplaceAll(Config(R"("model_type": "llama")"), {{R"("num_key_value_heads": 2, )", ""}});
  const std::string null =
      absl::StrReplaceAll(Config(R"("model_type": "llama")"),
                          {{R"("num_key_value_heads": 2)", R"("num_key_value_heads": null)"}});
  EXPECT_EQ(Problem(config, options), "");
  EXPECT_EQ(Problem(null, options), "");
  options.qk_norm = true;
  const std::string qwen3 = absl::StrReplaceAll(config, {{"\"llama\"", "\"qwen3\""}});
  EXPECT_EQ(
      Problem(qwen3, options),
      "config.json: num_key_value_heads is missing, which means 32; the run has 4 (model.llama.kv_heads). "
      "Also: head_dim is missing, which means 128; the run has 8 (model.llama.head_dim)");
  options.heads = 32;
  options.head_dim = 128;
  EXPECT_EQ(
      Problem(absl::StrReplaceAll(qwen3, {{R"("num_attention_heads": 4)", R"("num_attention_heads": 32)"}}),
              options),
      "");
}

TEST(LlamaLayout, OtherVariantsAreRejected) {
  EXPECT_THAT(Problem(Config(R"("model_type": "llama", "attention_bias": true)"), Small()),
              HasSubstr("attention_bias is true"));
  EXPECT_THAT(Problem(Config(R"("model_type": "llama", "mlp_bias": true)"), Small()),
              HasSubstr("mlp_bias is true"));
  LlamaOptions qwen2 = Small();
  qwen2.qkv_bias = true;
  EXPECT_THAT(Problem(Config(R"("model_type": "qwen2", "use_sliding_window": true)"), qwen2),
              HasSubstr("use_sliding_window is true"));
}

TEST(LlamaLayout, WhatIsWrittenIsAccepted) {
  for (const double factor : {1.0, 32.0}) {
    LlamaOptions options = Small();
    options.rope_theta = 5e5;
    options.rope_scaling.factor = factor;
    const std::string text = HfConfigText(*LlamaLayout(options), FileDtype::kF32, {});
    EXPECT_EQ(Problem(text, options), "");
    EXPECT_THAT(text, HasSubstr("\"rope_theta\": 500000.0"));
    EXPECT_EQ(text.find("\"rope_type\": \"llama3\"") != std::string::npos, factor > 1) << text;
  }
}

}  // namespace
}  // namespace atl

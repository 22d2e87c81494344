#include "core/hf/model_of_config.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/hf/config_file.h"
#include "core/hf/layout.h"
#include "core/model_presets.h"
#include "core/model_shape.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

/// Every setting that a model's parameters depend on.
std::string Described(const ModelOptions& model) {
  std::string text;
  for (const ModelSetting& of : ShapeOf(model)->FixedSettings()) {
    absl::StrAppend(&text, of.setting, "=", of.value, " ");
  }
  return text;
}

std::string ConfigOf(const ModelOptions& model) {
  return HfConfigText(*HfLayoutOf(model), FileDtype::kF32, {});
}

TEST(ModelOfHfConfig, ReadsWhatAnExportWrites) {
  for (const ModelPreset& preset : ModelPresets()) {
    const auto read = ModelOfHfConfig(ConfigOf(preset.model), "config.json");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(Described(*read), Described(preset.model));
  }
}

TEST(ModelOfHfConfig, ReadsTheRotaryPositionsOfTransformers5) {
  const auto read = ModelOfHfConfig(
      R"({"model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64,
          "intermediate_size": 96, "max_position_embeddings": 64, "vocab_size": 256, "head_dim": null,
          "rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0,
          "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}})",
      "config.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->llama()->rope_theta, 5e5);
  EXPECT_EQ(read->llama()->rope_scaling.factor, 32);
  EXPECT_EQ(read->llama()->rope_scaling.original_context, 16);
  EXPECT_EQ(read->llama()->rms_norm_epsilon, 1e-6) << "transformers' default";
  EXPECT_FALSE(read->llama()->tied_embeddings);
}

TEST(ModelOfHfConfig, MissingSizesHaveTheDefaultsOfTheFamily) {
  const auto read = [](const std::string& type) {
    return ModelOfHfConfig(
               absl::StrCat(R"({"num_hidden_layers": 2, "num_attention_heads": 64, "hidden_size": 1024,
                   "intermediate_size": 96, "max_position_embeddings": 64, "vocab_size": 256, "model_type": ")",
                            type, "\"}"),
               "config.json")
        .value();
  };
  EXPECT_EQ(read("llama").llama()->key_value_heads(), 64u);
  EXPECT_EQ(read("llama").llama()->head_width(), 16u);
  EXPECT_EQ(read("qwen2").llama()->key_value_heads(), 32u);
  EXPECT_EQ(read("qwen2").llama()->head_width(), 16u);
  EXPECT_EQ(read("qwen3").llama()->key_value_heads(), 32u);
  EXPECT_EQ(read("qwen3").llama()->head_width(), 128u);
}

TEST(ModelOfHfConfig, NamesWhatItCannotRead) {
  const std::string config = ConfigOf(FindModelPreset("smollm2-135m")->model);
  const auto problem = [&](const std::string& from, const std::string& to) {
    const std::string changed = absl::StrReplaceAll(config, {{from, to}});
    EXPECT_NE(changed, config) << from;
    const auto read = ModelOfHfConfig(changed, "config.json");
    EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << read.status();
    return std::string(read.status().message());
  };
  EXPECT_EQ(problem(R"("model_type": "llama")", R"("model_type": "mamba")"),
            "config.json: model_type is 'mamba'; gpt2, llama, qwen2 and qwen3 are known");
  EXPECT_EQ(problem(R"("hidden_size": 576)", R"("hidden_size": -1)"),
            "config.json: hidden_size is -1; expected a whole number from 1 to 1048576");
  EXPECT_EQ(problem(R"("hidden_size": 576,)", ""),
            "config.json: hidden_size is missing; expected a whole number from 1 to 1048576");
  EXPECT_EQ(problem(R"("num_hidden_layers": 30)", R"("num_hidden_layers": 100000)"),
            "config.json: num_hidden_layers is 100000; expected a whole number from 1 to 4096");
  EXPECT_THAT(problem(R"("num_key_value_heads": 3)", R"("num_key_value_heads": 4)"),
              HasSubstr("config.json: model.llama.kv_heads: 4 does not divide model.llama.heads"));
  EXPECT_THAT(problem(R"("hidden_act": "silu")", R"("hidden_act": "gelu")"),
              HasSubstr("hidden_act is \"gelu\""));
  EXPECT_EQ(std::string(ModelOfHfConfig("[1", "config.json").status().message()), "config.json: is not JSON");
  EXPECT_THAT(std::string(ModelOfHfConfig("[1]", "config.json").status().message()),
              HasSubstr("model_type is ''"));
}

TEST(ModelOfHfConfig, NamesAScalingThatNoModelHas) {
  const std::string config = absl::StrReplaceAll(
      ConfigOf(FindModelPreset("smollm2-135m")->model),
      {{R"("rope_theta")", R"("rope_scaling": {"rope_type": "yarn", "factor": 4.0}, "rope_theta")"}});
  EXPECT_THAT(std::string(ModelOfHfConfig(config, "config.json").status().message()),
              HasSubstr("rope_scaling.rope_type is \"yarn\""));
}

std::string LlamaConfig(const std::string& more) {
  return absl::StrCat(
      R"({"model_type": "llama", "num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64,
          "intermediate_size": 96, "max_position_embeddings": 64, "vocab_size": 256, )",
      more, "}");
}

// What transformers 5 takes: rope_scaling instead of rope_parameters, and a theta inside before one outside.
TEST(ModelOfHfConfig, TakesThetaFromEachPlaceThatTransformersReads) {
  for (const char* const fields : {
           R"("rope_theta": 20)",
           R"("rope_theta": 20, "rope_scaling": null)",
           R"("rope_theta": null, "rope_parameters": {"rope_type": "default", "rope_theta": 20.0})",
           R"("rope_scaling": {"rope_type": "default", "rope_theta": 20})",
           R"("rope_scaling": {"type": "default", "rope_theta": 20}, "rope_theta": 20)",
           R"("rope_scaling": {}, "rope_parameters": {"type": "default", "rope_theta": 20})",
           R"("rope_scaling": {"type": "default"}, "rope_theta": 20, "rope_parameters": {"rope_theta": 20})",
       }) {
    const auto read = ModelOfHfConfig(LlamaConfig(fields), "config.json");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->llama()->rope_theta, 20) << fields;
  }
}

TEST(ModelOfHfConfig, NamesBothFieldsOfAContradictionAboutPositions) {
  const auto problem = [](const std::string& fields) {
    const auto read = ModelOfHfConfig(LlamaConfig(fields), "config.json");
    EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << fields;
    return std::string(read.status().message());
  };
  EXPECT_EQ(problem(R"("rope_theta": 1e4, "rope_parameters": {"rope_type": "default", "rope_theta": 500})"),
            "config.json: rope_theta is 10000.0 and rope_parameters.rope_theta is 500, but they are names of "
            "one field; remove one");
  EXPECT_THAT(problem(R"("rope_theta": 1e4, "rope_scaling": {"rope_type": "default", "rope_theta": 20})"),
              HasSubstr("rope_theta is 10000.0 and rope_scaling.rope_theta is 20, but"));
  EXPECT_THAT(problem(R"("rope_scaling": {"rope_type": "default", "type": "linear", "rope_theta": 20})"),
              HasSubstr(R"(rope_scaling.rope_type is "default" and rope_scaling.type is "linear", but)"));
  const std::string llama3 =
      R"("rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
         "original_max_position_embeddings": 16}, )";
  EXPECT_EQ(
      problem(llama3 + R"("rope_parameters": {"rope_type": "default", "rope_theta": 10000.0})"),
      "config.json: rope_scaling.factor is 8 and rope_parameters.factor is missing, but readers use one of "
      "the two objects; remove one");
  EXPECT_THAT(
      problem(R"("rope_scaling": {"factor": 4}, "rope_parameters": {"factor": 4, "type": "yarn"})"),
      HasSubstr(R"(rope_scaling.rope_type is "default" and rope_parameters.rope_type is "yarn", but)"));
  EXPECT_THAT(problem(R"("rope_scaling": {"type": "default"}, "rope_parameters": {"rope_theta": 20})"),
              HasSubstr("rope_scaling.rope_theta is missing and rope_parameters.rope_theta is 20, but"));
  EXPECT_THAT(problem(R"("rope_parameters": {"full_attention": {"rope_theta": 20}})"),
              HasSubstr("rope_parameters.full_attention is an object"));
  EXPECT_THAT(problem(R"("rope_scaling": 4)"), HasSubstr("rope_scaling is 4; expected an object"));
}

TEST(ModelOfHfConfig, NamesBothNamesOfOneSize) {
  const auto problem = [](const std::string& fields) {
    return std::string(ModelOfHfConfig(absl::StrCat(R"({"model_type": "gpt2", )", fields, "}"), "config.json")
                           .status()
                           .message());
  };
  EXPECT_EQ(problem(R"("n_head": 4, "num_attention_heads": 4, "n_layer": 2, "num_hidden_layers": null)"), "");
  EXPECT_EQ(
      problem(R"("n_head": 4, "num_attention_heads": 2)"),
      "config.json: n_head is 4 and num_attention_heads is 2, but they are names of one field; remove one");
  EXPECT_THAT(problem(R"("n_layer": 2, "num_hidden_layers": 1)"),
              HasSubstr("n_layer is 2 and num_hidden_layers is 1, but"));
  EXPECT_THAT(problem(R"("n_embd": 96, "hidden_size": 48)"),
              HasSubstr("n_embd is 96 and hidden_size is 48, but"));
}

TEST(ModelOfHfConfig, RejectsLayersWithSlidingAttention) {
  const std::string config = ConfigOf(FindModelPreset("qwen3-0.6b")->model);
  const auto problem = [&](const std::string& layers) {
    const std::string changed = absl::StrReplaceAll(
        config, {{R"("model_type")", absl::StrCat(R"("layer_types": )", layers, R"(, "model_type")")}});
    EXPECT_NE(changed, config);
    return std::string(ModelOfHfConfig(changed, "config.json").status().message());
  };
  EXPECT_EQ(problem("null"), "");
  EXPECT_EQ(problem(R"(["full_attention", "full_attention"])"), "");
  EXPECT_EQ(
      problem(R"(["full_attention", "sliding_attention"])"),
      "config.json: layer_types[1] is \"sliding_attention\"; the run has \"full_attention\" (the attention "
      "of model.llama)");
  EXPECT_THAT(problem(R"("sliding_attention")"), HasSubstr("layer_types is \"sliding_attention\""));
}

}  // namespace
}  // namespace atl

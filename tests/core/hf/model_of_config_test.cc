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

}  // namespace
}  // namespace atl

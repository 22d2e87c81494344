// Models of the Llama family and presets of published models (`model: {preset: NAME}`), from YAML to
// RunOptions.

#include <string>

#include "core/llama_shape.h"
#include "core/model_presets.h"
#include "core/model_shape.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "protos/config/model_options.h"
#include "protos/config/run_config.h"
#include "protos/config/run_config_codec.h"
#include "tests/protos/sample_config.h"

namespace atl {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kGpt[] =
    "model:\n  gpt:\n    layers: 2\n    heads: 4\n    width: 64\n    context: 32\n    vocabulary: 256\n";

/// The sample with this model, from line 5 on.
std::string With(const std::string& model) { return Sample(kGpt, model); }

std::string WithLlama(const std::string& more) {
  return With(
      "model:\n  llama: {layers: 2, heads: 4, width: 64, intermediate: 160, context: 32, vocabulary: 256" +
      more + "}\n");
}

v1::RunConfig Read(const std::string& yaml) {
  const auto config = ParseRunConfig(yaml, "s.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return config.value_or(v1::RunConfig());
}

std::string Settings(const ModelOptions& model) {
  std::string all;
  for (const auto& [setting, value] : ShapeOf(model)->FixedSettings()) all += setting + "=" + value + " ";
  return all;
}

TEST(ConfigModelTest, EveryFieldOfALlamaIsRead) {
  const auto options = ToRunOptions(Read(WithLlama(
      ", kv_heads: 2, head_dim: 24, rope_theta: 5e5, rope_scaling: {factor: 32, low_freq_factor: 2, "
      "high_freq_factor: 8, original_context: 4096}, rms_norm_epsilon: 1e-6, tied_embeddings: false, "
      "qkv_bias: "
      "true, qk_norm: true")));
  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_NE(options->model.llama(), nullptr);
  EXPECT_EQ(Settings(options->model),
            "layers=2 heads=4 kv_heads=2 head_dim=24 width=64 intermediate=160 context=32 vocabulary=256 "
            "rope_theta=5e+05 rope_scaling.factor=32 rope_scaling.low_freq_factor=2 "
            "rope_scaling.high_freq_factor=8 rope_scaling.original_context=4096 rms_norm_epsilon=1e-06 "
            "tied_embeddings=false qkv_bias=true qk_norm=true ");
  EXPECT_EQ(options->model.context(), 32U);
  EXPECT_EQ(options->model.vocabulary(), 256U);
  // 20 rounds of 50 steps, of 12 sequences of 32 tokens on each of 4 workers.
  EXPECT_EQ(options->total_tokens(), 20U * 50 * 12 * 32 * 4);
}

TEST(ConfigModelTest, ALlamaHasDefaults) {
  const auto options = ToRunOptions(Read(WithLlama("")));
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(Settings(options->model), Settings(ModelOptions(LlamaOptions{.layers = 2,
                                                                         .heads = 4,
                                                                         .kv_heads = 4,
                                                                         .head_dim = 16,
                                                                         .width = 64,
                                                                         .intermediate = 160,
                                                                         .context = 32,
                                                                         .vocabulary = 256})));
  EXPECT_EQ(ManifestOf(options->model)->tensors.front().name, "model.embed_tokens.weight");
}

TEST(ConfigModelTest, ProblemsOfALlamaNameTheSetting) {
  EXPECT_EQ(ComplaintAbout(WithLlama(", kv_heads: 3")),
            "model.llama.kv_heads: 3 does not divide model.llama.heads, which is 4");
  EXPECT_THAT(ComplaintAbout(WithLlama(", rope_scaling: {factor: 0.5}")),
              HasSubstr("model.llama.rope_scaling.factor: 0.5 is out of range"));
  EXPECT_THAT(ComplaintAbout(WithLlama(", rope_scaling: {factor: 2, high_freq_factor: 1}")),
              HasSubstr("model.llama.rope_scaling.high_freq_factor: 1 is not above "));
  EXPECT_THAT(
      ComplaintAbout(WithLlama(", dropouts: 0.1")),
      HasSubstr(
          "model.llama: unknown field 'dropouts'; did you mean 'dropout'? allowed: layers, heads, kv_heads"));
  EXPECT_THAT(ComplaintAbout(With("model: {llama: {layers: 2}}\n")),
              HasSubstr("model.llama.intermediate: is missing"));
}

TEST(ConfigModelTest, APresetHasTheValuesOfItsModel) {
  for (const ModelPreset& preset : ModelPresets()) {
    const std::string name(preset.name);
    EXPECT_EQ(Settings(ModelOptionsOf(ModelSectionOf(preset.model))), Settings(preset.model)) << name;
    if (ShapeOf(preset.model)->FindProblem()) continue;
    const v1::RunConfig config = Read(With("model: {preset: " + name + "}\n"));
    EXPECT_EQ(Settings(ModelOptionsOf(config.model())), Settings(preset.model)) << name;
    EXPECT_TRUE(MessageDifferencer::Equals(config, Read(With("model: " + name + "\n")))) << name;
    EXPECT_TRUE(MessageDifferencer::Equals(config, Read(FormatRunConfigYaml(config)))) << name;
    EXPECT_TRUE(RunConfigCodec().Parse(config.SerializeAsString()).ok()) << name;
  }
}

TEST(ConfigModelTest, WhatTheFileSetsWinsOverThePreset) {
  const v1::ModelSection model =
      Read(
          With(
              "model:\n  preset: smollm2-135m\n  llama:\n    context: 2048\n    rope_scaling: {factor: 4}\n"))
          .model();
  EXPECT_EQ(model.llama().context(), 2048U);
  EXPECT_EQ(model.llama().layers(), 30U);
  EXPECT_EQ(model.llama().rope_theta(), 1e5);
  EXPECT_EQ(model.llama().rope_scaling().factor(), 4);
  EXPECT_EQ(model.llama().rope_scaling().original_context(), 8192U);
  EXPECT_EQ(Read(With("model:\n  preset: gpt2\n  gpt:\n")).model().gpt().layers(), 12U);
  const v1::GptModel gpt =
      Read(With("model: {gpt: {dropout: 0.1, layers: 2}, preset: gpt2}\n")).model().gpt();
  EXPECT_EQ(gpt.dropout(), 0.1);
  EXPECT_EQ(gpt.layers(), 2U);
  EXPECT_EQ(gpt.width(), 768U);
}

TEST(ConfigModelTest, ATorchScriptModelIsOneThatOnlyTheWorkersKnow) {
  const std::string section = "model: {torchscript: {file: m.pt, context: 64, vocabulary: 300}}\n";
  const auto options = ToRunOptions(Read(With(section)));
  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_NE(options->model.external(), nullptr);
  EXPECT_EQ(options->model.external()->script, "m.pt");
  EXPECT_EQ(options->model.context(), 64U);
  EXPECT_EQ(options->model.vocabulary(), 300U);
  EXPECT_FALSE(options->model.size_known());
  EXPECT_EQ(ShapeOf(options->model)->section(), "model.torchscript");
  EXPECT_EQ(ModelSectionOf(options->model).torchscript().file(), "m.pt");
  EXPECT_THAT(ComplaintAbout(With("model: {torchscript: {context: 64, vocabulary: 300}}\n")),
              HasSubstr("model.torchscript.file: is missing"));
  EXPECT_THAT(ComplaintAbout(With(section) + "  precision: bf16\n"),
              HasSubstr("inner.precision: bf16: a model.torchscript computes as its file says"));
}

TEST(ConfigModelTest, ProblemsOfAPresetHaveItsLine) {
  const auto error = [](const std::string& model) {
    return std::string(ParseRunConfig(With(model), "s.yaml").status().message());
  };
  EXPECT_THAT(error("model:\n  preset: qwen3-0.6b\n  llama:\n    vocabulary: 1048577\n"),
              HasSubstr("s.yaml:8: model.llama.vocabulary: 1048577 is out of range"));
  EXPECT_THAT(error("model:\n  preset: smollm2-135m\n  llama:\n    kv_heads: 2\n"),
              HasSubstr("s.yaml:8: model.llama.kv_heads: 2 does not divide model.llama.heads, which is 9"));
  EXPECT_EQ(error("model:\n  preset: smollm-135m\n"),
            "s.yaml:5: model: 'smollm-135m' is not a preset; did you mean 'smollm2-135m'? allowed: gpt2, "
            "gpt2-medium, smollm2-135m, smollm2-360m, qwen2.5-0.5b, qwen3-0.6b, llama-3.2-1b, or a section");
  EXPECT_EQ(
      error("model: bert\n"),
      "s.yaml:5: model: 'bert' is not a preset; allowed: gpt2, gpt2-medium, smollm2-135m, smollm2-360m, "
      "qwen2.5-0.5b, qwen3-0.6b, llama-3.2-1b, external, or a section");
  EXPECT_THAT(error("model: {preset: [gpt2]}\n"), HasSubstr("model: '' is not a preset"));
  EXPECT_THAT(error("model:\n  preset: gpt2\n  preset: gpt2\n"), HasSubstr("model: unknown field 'preset'"));
  EXPECT_THAT(
      error("model:\n  preset: gpt2\n  llama: {context: 64}\n"),
      HasSubstr(
          "model: gives more than one kind; allowed: exactly one of gpt, llama, torchscript, external"));
  EXPECT_THAT(error("model: {preset: gpt2, gpt: large}\n"), HasSubstr("model.gpt: has the wrong type"));
  EXPECT_THAT(error("model: {preset: gpt3}\nround: {quorun: 1}\n"),
              AllOf(HasSubstr("'gpt3' is not a preset"), HasSubstr("unknown field 'quorun'"),
                    Not(HasSubstr("gives no kind"))));
}

}  // namespace
}  // namespace atl

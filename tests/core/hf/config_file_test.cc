#include "core/hf/config_file.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/hf/gpt2_layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

GptOptions Small() {
  GptOptions options;
  options.layers = 2;
  options.heads = 4;
  options.width = 64;
  options.context = 32;
  options.vocabulary = 256;
  options.dropout = 0.25;
  return options;
}

/// What transformers writes of such a model.
constexpr char kConfig[] = R"({
  "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "layer_norm_epsilon": 1e-05,
  "model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_inner": null, "n_layer": 2, "n_positions": 32,
  "tie_word_embeddings": true, "vocab_size": 256, "task_specific_params": {"text": {"max_length": 50}}
})";

std::string Problem(const std::string& text, const HfLayout& layout = Gpt2Layout(Small())) {
  const absl::Status status = CheckHfConfig(text, layout, "config.json");
  EXPECT_EQ(status.ok() ? absl::StatusCode::kInvalidArgument : status.code(),
            absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

std::string ProblemWith(const std::string& from, const std::string& to) {
  const std::string text = absl::StrReplaceAll(kConfig, {{from, to}});
  EXPECT_NE(text, kConfig) << from;
  return Problem(text);
}

TEST(HfConfig, AcceptsTheConfigurationOfTheModel) {
  EXPECT_EQ(Problem(kConfig), "");
  EXPECT_EQ(ProblemWith(R"("n_inner": null)", R"("n_inner": 256)"), "");
  EXPECT_EQ(ProblemWith("gelu_new", "gelu_pytorch_tanh"), "");
  EXPECT_EQ(ProblemWith("1e-05", "0.00001"), "");
  EXPECT_EQ(ProblemWith(R"("n_embd": 64)", R"("n_embd": 64.0)"), "");
  EXPECT_EQ(ProblemWith("n_embd", "hidden_size"), "") << "its other name";
  EXPECT_EQ(ProblemWith(R"("tie_word_embeddings": true, )", ""), "") << "transformers assumes true";
}

TEST(HfConfig, NamesTheFieldBothValuesAndTheSetting) {
  EXPECT_EQ(ProblemWith(R"("n_embd": 64)", R"("n_embd": 768)"),
            "config.json: n_embd is 768; the run has 64 (model.gpt.width)");
  EXPECT_THAT(ProblemWith(R"("n_head": 4)", R"("n_head": 8)"), HasSubstr("(model.gpt.heads)"));
  EXPECT_THAT(ProblemWith(R"("n_layer": 2)", R"("n_layer": 3)"), HasSubstr("(model.gpt.layers)"));
  EXPECT_THAT(ProblemWith(R"("n_positions": 32)", R"("n_positions": 64)"), HasSubstr("(model.gpt.context)"));
  EXPECT_THAT(ProblemWith("256", "257"),
              HasSubstr("vocab_size is 257; the run has 256 (model.gpt.vocabulary)"));
  EXPECT_THAT(ProblemWith("null", "100"), HasSubstr("n_inner is 100; the run has 256 (4 * model.gpt.width)"));
  EXPECT_THAT(ProblemWith("gelu_new", "relu"),
              HasSubstr(R"(activation_function is "relu"; the run has "gelu_new")"));
  EXPECT_THAT(ProblemWith("1e-05", "1e-06"), HasSubstr("layer_norm_epsilon is 1e-06; the run has 1e-05"));
  EXPECT_THAT(ProblemWith(": true", ": false"),
              HasSubstr("tie_word_embeddings is false; the run has true (model.gpt.tied_embeddings)"));
  EXPECT_THAT(ProblemWith(R"("n_embd": 64)", R"("n_embd": "64")"), HasSubstr(R"(n_embd is "64")"));
  EXPECT_THAT(ProblemWith("\"vocab_size\"", R"("scale_attn_by_inverse_layer_idx": true, "vocab_size")"),
              HasSubstr("scale_attn_by_inverse_layer_idx is true"));
}

TEST(HfConfig, AMissingFieldMeansItsDefaultAndTheNearestNameIsTold) {
  EXPECT_EQ(ProblemWith("n_embd", "n_emdb"),
            "config.json: n_embd is missing, which means 768; the run has 64 (model.gpt.width); did you mean "
            "'n_emdb'?");
}

TEST(HfConfig, TellsAllContradictionsAtOnce) {
  EXPECT_EQ(ProblemWith(R"("n_head": 4, "n_inner": null, "n_layer": 2)", R"("n_head": 2, "n_layer": 1)"),
            "config.json: n_layer is 1; the run has 2 (model.gpt.layers). Also: n_head is 2; the run has 4 "
            "(model.gpt.heads)");
}

TEST(HfConfig, OtherFamiliesAndOtherFilesAreRejected) {
  EXPECT_EQ(ProblemWith("\"gpt2\"", "\"llama\""),
            "config.json: model_type is \"llama\"; the run's model is a 'gpt2'");
  EXPECT_THAT(ProblemWith("\"model_type\"", "\"type\""), HasSubstr("model_type is missing"));
  EXPECT_EQ(Problem("[]"), "config.json: is not a JSON object");
  EXPECT_EQ(Problem("{"), "config.json: is not JSON");
  EXPECT_THAT(ProblemWith("\"n_head\"", R"("n_layer": 2, "n_head")"), HasSubstr("names 'n_layer' twice"));
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += R"({"a":)";
  EXPECT_THAT(Problem(deep), HasSubstr("nested deeper than 16"));
}

// Families with fields inside others, and with an older and a newer name of one.
TEST(HfConfig, FieldsInsideOthersHaveADot) {
  HfLayout layout;
  layout.model_type = "llama";
  layout.fields = {
      {{"rope_theta", "rope_parameters.rope_theta"}, HfValue(5e5), "model.llama.theta"},
      {{"rope_scaling.factor", "rope_parameters.factor"}, HfValue(32.0), "model.llama.factor", HfValue()}};
  EXPECT_THAT(Problem(R"({"model_type": "llama", "rope_parameters": {"rope_theta": 500000.0, "factor": 32}})",
                      layout),
              "");
  EXPECT_EQ(Problem(R"({"model_type": "llama", "rope_theta": 10000})", layout),
            "config.json: rope_theta is 10000; the run has 500000.0 (model.llama.theta). Also: "
            "rope_scaling.factor is missing, which means null; the run has 32.0 (model.llama.factor)");
  EXPECT_THAT(Problem(R"({"model_type": "llama"})", layout), HasSubstr("rope_theta is missing; the run has"));
  EXPECT_THAT(HfConfigText(layout, FileDtype::kF32, {}),
              HasSubstr("\"rope_scaling\": {\n    \"factor\": 32.0\n"));
}

TEST(HfConfig, AFieldMayBeComparedOnly) {
  HfLayout layout;
  layout.model_type = "llama";
  layout.fields = {{.names = {"rope_scaling.rope_type", "rope_parameters.rope_type"},
                    .value = HfValue(),
                    .setting = "model.llama.rope_scaling",
                    .absent = HfValue(),
                    .same = {HfValue(std::string("default"))},
                    .written = false}};
  EXPECT_EQ(Problem(R"({"model_type": "llama", "rope_scaling": null})", layout), "");
  EXPECT_EQ(Problem(R"({"model_type": "llama", "rope_parameters": {"rope_type": "default"}})", layout), "");
  EXPECT_EQ(Problem(R"({"model_type": "llama", "rope_scaling": {"rope_type": "yarn"}})", layout),
            "config.json: rope_scaling.rope_type is \"yarn\"; the run has null (model.llama.rope_scaling)");
  EXPECT_THAT(HfConfigText(layout, FileDtype::kF32, {}), Not(HasSubstr("rope")));
}

TEST(HfConfig, WhatIsWrittenIsAccepted) {
  for (const bool tied : {true, false}) {
    GptOptions options = Small();
    options.tied_embeddings = tied;
    const HfLayout layout = Gpt2Layout(options);
    const std::string text = HfConfigText(layout, FileDtype::kBf16, {.begin = 1, .ends = {2}});
    EXPECT_EQ(Problem(text, layout), "");
    EXPECT_THAT(text, AllOf(HasSubstr(R"("torch_dtype": "bfloat16")"), HasSubstr(R"("bos_token_id": 1)"),
                            HasSubstr(R"("n_ctx": 32)"), HasSubstr(R"("resid_pdrop": 0.25)"),
                            HasSubstr(R"("n_inner": 256)"), HasSubstr("\"GPT2LMHeadModel\"")));
    EXPECT_EQ(TokenIdsOf(text, 256), (HfTokenIds{.begin = 1, .ends = {2}}));
    EXPECT_EQ(TokenIdsOf(text, 2), (HfTokenIds{.begin = 1})) << "2 is not below 2";
  }
}

TEST(HfConfig, UnknownTokenIdsAreNull) {
  EXPECT_THAT(HfConfigText(Gpt2Layout(Small()), FileDtype::kF32, {}),
              AllOf(HasSubstr(R"("bos_token_id": null)"), HasSubstr(R"("eos_token_id": null)")));
  EXPECT_THAT(HfGenerationConfigText({}), Not(HasSubstr("token_id")));
  EXPECT_THAT(HfGenerationConfigText({.begin = 3, .ends = {4}}), HasSubstr(R"("eos_token_id": 4)"));
}

TEST(HfConfig, TokenIdsAreReadFromOtherFiles) {
  EXPECT_EQ(TokenIdsOf(R"({"bos_token_id": 5, "eos_token_id": [7, 8]})", 100),
            (HfTokenIds{.begin = 5, .ends = {7, 8}}));
  EXPECT_EQ(TokenIdsOf(R"({"eos_token_id": [7, 100, "x", 8]})", 100), (HfTokenIds{.ends = {7, 8}}));
  for (const char* const text : {"", "[]", "{}", R"({"bos_token_id": -1, "eos_token_id": "x"})",
                                 R"({"bos_token_id": null, "eos_token_id": []})"}) {
    EXPECT_EQ(TokenIdsOf(text, 100), HfTokenIds()) << text;
  }
}

// As Llama 3 has them: a chat ends at another token than a text.
TEST(HfConfig, SeveralTokensMayEndAText) {
  const HfTokenIds ids = {.begin = 3, .ends = {4, 9}};
  for (const std::string& text :
       {HfConfigText(Gpt2Layout(Small()), FileDtype::kF32, ids), HfGenerationConfigText(ids)}) {
    EXPECT_EQ(TokenIdsOf(text, 100), ids) << text;
  }
}

}  // namespace
}  // namespace atl

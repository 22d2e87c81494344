#include "core/hf/tensor_match.h"

#include <limits>
#include <string>

#include "core/float_bits.h"
#include "core/hf/gpt2_layout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/hf/found_tensors.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Two tensors that lie differently in a file, one that only files have, a constant, and a tied head.
HfLayout Sample() {
  HfLayout layout;
  layout.prefix = "model.";
  layout.tensors = {{.name = "model.embed.weight", .shape = {3, 2}},
                    {.name = "model.layer.weight", .shape = {2, 3}, .transposed = true}};
  layout.zeros = {{.name = "model.layer.bias", .shape = {2}}};
  layout.ignored = {"model.mask"};
  layout.tied = {.name = "lm_head.weight", .tensor = 0};
  return layout;
}

class TensorMatchTest : public testing::Test {
 protected:
  TensorMatchTest() { found_.AddAll(layout_); }

  absl::Status Import(ExtraTensors extra = ExtraTensors::kReject) {
    const auto match = MatchTensors(layout_, found_.all(), "folder", extra);
    return match.ok() ? CheckValues(layout_, *match) : match.status();
  }
  std::string Error() {
    const absl::Status status = Import();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  const HfLayout layout_ = Sample();
  FoundTensors found_;
};

TEST_F(TensorMatchTest, ReadsValuesInTheOrderOfTheRun) {
  ASSERT_TRUE(Import().ok()) << Import();
  const auto match = MatchTensors(layout_, found_.all(), "folder");
  std::vector<float> values(6);
  ReadValues(layout_, *match, 0, values);
  EXPECT_THAT(values, ElementsAre(1, 2, 3, 4, 5, 6));
  ReadValues(layout_, *match, 1, values);
  EXPECT_THAT(values, ElementsAre(1, 4, 2, 5, 3, 6)) << "rows and columns are swapped";
}

TEST_F(TensorMatchTest, NamesMayLackThePrefix) {
  found_.entry(0).name = "embed.weight";
  found_.entry(1).name = "layer.weight";
  found_.Add("mask", {1}, {7});
  EXPECT_TRUE(Import().ok()) << Import();
  found_.Add("head.weight", {3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(Error(), HasSubstr("'head.weight' is not in the model"));
}

TEST_F(TensorMatchTest, ConstantsAndAnEqualHeadAreAccepted) {
  found_.Add("model.mask", {5}, {1, std::numeric_limits<float>::quiet_NaN(), 3, 4, 5});
  found_.Add("lm_head.weight", {3, 2}, {1, 2, 3, 4, 5, 6});
  found_.Add("model.layer.bias", {2}, {0, -0.0F});
  EXPECT_TRUE(Import().ok()) << Import();
}

TEST_F(TensorMatchTest, AnotherHeadIsRejected) {
  found_.Add("lm_head.weight", {3, 2}, {1, 2, 3, 4.5F, 5, 6});
  EXPECT_EQ(
      Error(),
      "m.safetensors: tensor 'lm_head.weight' is 4.5 at 3, and 'model.embed.weight' is 4 there; the model "
      "of the configuration has one tensor for both (tied embeddings)");
}

TEST_F(TensorMatchTest, ATensorThatTheModelHasNotMustBeZero) {
  found_.Add("model.layer.bias", {2}, {0, 0.25F});
  EXPECT_EQ(Error(),
            "m.safetensors: tensor 'model.layer.bias' is 0.25 at 1; the model of the configuration does not "
            "have this tensor, so all of it must be zero");
}

TEST_F(TensorMatchTest, AMissingTensorIsNamedWithWhatIsNearIt) {
  found_.entry(1).name = "model.layer.wieght";
  EXPECT_EQ(Error(),
            "folder: tensor 'model.layer.weight' is missing; the model of the configuration has it, in shape "
            "[2, 3]; did you mean 'model.layer.wieght'?");
  found_.entry(1).name = "x";
  EXPECT_EQ(Error(),
            "folder: tensor 'model.layer.weight' is missing; the model of the configuration has it, in shape "
            "[2, 3]");
}

TEST_F(TensorMatchTest, AFurtherTensorIsNamedWithWhatIsNearIt) {
  found_.Add("model.layer.biass", {2}, {0, 0});
  EXPECT_EQ(
      Error(),
      "m.safetensors: tensor 'model.layer.biass' is not in the model of the configuration; did you mean "
      "'model.layer.bias'?");
  EXPECT_TRUE(Import(ExtraTensors::kIgnore).ok());
}

TEST_F(TensorMatchTest, TwoNamesOfOneTensorAreRejected) {
  found_.Add("embed.weight", {3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(
      Error(),
      "m.safetensors: tensor 'embed.weight' is in m.safetensors too, as 'model.embed.weight'; keep one of "
      "them");
}

TEST_F(TensorMatchTest, AnotherShapeIsRejected) {
  found_.entry(0).shape = {6};
  EXPECT_EQ(
      Error(),
      "m.safetensors: tensor 'model.embed.weight' has shape [6]; the model of the configuration has [3, 2]");
  found_.entry(0).shape = {2, 3};
  EXPECT_THAT(Error(), HasSubstr("has shape [2, 3]; the model of the configuration has [3, 2], which is its "
                                 "transpose"));
}

TEST_F(TensorMatchTest, OtherDtypesAreRejected) {
  found_.entry(0).dtype = "I32";
  EXPECT_EQ(Error(),
            "m.safetensors: tensor 'model.embed.weight' is of type I32; F32, F16 and BF16 can be imported");
}

TEST_F(TensorMatchTest, ValuesAreFinite) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    FoundTensors found;
    found.Add("model.embed.weight", {3, 2}, {1, 2, 3, 4, 5, bad});
    found.Add("model.layer.weight", {2, 3}, {1, 2, 3, 4, 5, 6});
    const auto match = MatchTensors(layout_, found.all(), "folder");
    ASSERT_TRUE(match.ok()) << match.status();
    EXPECT_EQ(CheckValues(layout_, *match).message(),
              "m.safetensors: tensor 'model.embed.weight' has a value that is not finite, at 5");
  }
}

TEST_F(TensorMatchTest, HalvesAreWidenedExactly) {
  FoundTensors found;
  const std::vector<uint16_t> fp16 = {0x0001, 0x8000, 0x3c00, 0x7bff, 0x3555, 0x0400};
  const std::vector<uint16_t> bf16 = {0x0001, 0x8000, 0x3f80, 0x7f7f, 0x3eab, 0x0080};
  found.AddRaw("model.embed.weight", "F16", {3, 2}, std::as_bytes(std::span(fp16)));
  found.AddRaw("model.layer.weight", "BF16", {2, 3}, std::as_bytes(std::span(bf16)));
  const auto match = MatchTensors(layout_, found.all(), "folder");
  ASSERT_TRUE(match.ok()) << match.status();
  EXPECT_TRUE(CheckValues(layout_, *match).ok());
  std::vector<float> values(6);
  ReadValues(layout_, *match, 0, values);
  EXPECT_THAT(values, ElementsAre(0x1p-24F, -0.0F, 1, 65504, 0x1.554p-2F, 0x1p-14F));
  ReadValues(layout_, *match, 1, values);
  EXPECT_THAT(values, ElementsAre(0x1p-133F, 0x1.fep127F, -0.0F, 0x1.56p-2F, 1, 0x1p-126F));
}

// A head in another dtype than the embedding is compared by value.
TEST_F(TensorMatchTest, AHeadOfAnotherDtypeIsCompared) {
  std::vector<uint16_t> head;
  for (int i = 1; i <= 6; ++i) head.push_back(Bf16FromFloat(static_cast<float>(i)));
  found_.AddRaw("lm_head.weight", "BF16", {3, 2}, std::as_bytes(std::span(head)));
  EXPECT_TRUE(Import().ok()) << Import();
}

TEST(Gpt2Match, TakesTheNamesOfTheHub) {
  GptOptions options;
  options.layers = 2;
  options.heads = 2;
  options.width = 4;
  options.context = 3;
  options.vocabulary = 5;
  const HfLayout layout = Gpt2Layout(options);
  FoundTensors found;
  found.AddAll(layout);
  for (size_t i = 0; i < layout.tensors.size(); ++i) {
    std::string& name = found.entry(i).name;
    ASSERT_TRUE(name.starts_with("transformer.")) << name;
    name = name.substr(std::string("transformer.").size());
  }
  found.Add("h.0.attn.bias", {1, 1, 3, 3}, std::vector<float>(9, 1));
  found.Add("transformer.h.1.attn.masked_bias", {}, {-1e4F});
  const auto match = MatchTensors(layout, found.all(), "hub");
  ASSERT_TRUE(match.ok()) << match.status();
  EXPECT_TRUE(CheckValues(layout, *match).ok());
  found.Add("h.2.ln_1.weight", {4}, {1, 1, 1, 1});
  EXPECT_THAT(MatchTensors(layout, found.all(), "hub").status().ToString(),
              AllOf(HasSubstr("'h.2.ln_1.weight' is not in the model of the configuration"),
                    HasSubstr("did you mean 'h.0.ln_1.weight'?")));
}

}  // namespace
}  // namespace atl

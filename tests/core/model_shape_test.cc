#include "core/model_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atl {
namespace {

using ::testing::HasSubstr;

// GPT-2 small (Radford et al. 2019).
ModelOptions Gpt2Small() {
  return GptOptions{.layers = 12, .heads = 12, .width = 768, .context = 1024, .vocabulary = 50257};
}

TEST(ModelShape, KnowsTheModelBeforeItIsBuilt) {
  const auto shape = ShapeOf(Gpt2Small());
  EXPECT_EQ(shape->section(), "model.gpt");
  EXPECT_EQ(shape->blocks(), 12U);
  EXPECT_EQ(shape->MakeManifest()->elements(), 124439808U) << "as Hugging Face counts them";
  EXPECT_EQ(Gpt2Small().context(), 1024U);
  EXPECT_EQ(Gpt2Small().vocabulary(), 50257U);
}

TEST(ModelShape, CountsTheOperationsOfAToken) {
  // By hand: (12 * 12 * 768^2 + 50257 * 768) weights of matrix products, 6 operations each, and 12 * 12 * 768
  // * 1024 for attention.
  EXPECT_DOUBLE_EQ(ShapeOf(Gpt2Small())->TrainingFlopsPerToken(), 6.0 * 123532032 + 113246208);
}

TEST(ModelShape, EstimatesActivations) {
  // By hand: 12 * (34 * 768 + 5 * 12 * 1024) bytes at 16 bits, twice that at 32, and 8 * 50257 for the
  // logits.
  const auto shape = ShapeOf(Gpt2Small());
  EXPECT_EQ(shape->ActivationBytesPerToken(Precision::kBf16, Activations::kKept), 1050624U + 402056U);
  EXPECT_EQ(shape->ActivationBytesPerToken(Precision::kFp32, Activations::kKept), 2101248U + 402056U);
  // Recomputed: one block of the 12, and 12 * 768 float32 values.
  EXPECT_EQ(shape->ActivationBytesPerToken(Precision::kFp32, Activations::kRecomputed),
            2101248U / 12 + 12 * 768 * 4 + 402056U);
}

TEST(ModelShape, NamesWhatIsWrongAndWhatIsFixed) {
  EXPECT_FALSE(ShapeOf(Gpt2Small())->FindProblem().has_value());
  ModelOptions odd = Gpt2Small();
  odd.gpt().heads = 5;
  const auto problem = ShapeOf(odd)->FindProblem();
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->setting, "heads");
  EXPECT_THAT(problem->text, HasSubstr("5 does not divide model.gpt.width, which is 768"));
  for (const ModelSetting& fixed : ShapeOf(odd)->FixedSettings()) {
    EXPECT_NE(fixed.setting, "dropout") << "it may change while the run goes on";
  }
}

TEST(ModelShape, OfAnExternalModelNothingIsKnown) {
  const ModelOptions external(ExternalOptions{.context = 3});
  const auto shape = ShapeOf(external);
  EXPECT_EQ(shape->section(), "model.external");
  EXPECT_FALSE(shape->MakeManifest().has_value());
  EXPECT_FALSE(shape->FindProblem().has_value());
  const auto manifest = ManifestOf(external);
  EXPECT_TRUE(absl::IsFailedPrecondition(manifest.status()));
  EXPECT_THAT(std::string(manifest.status().message()), HasSubstr("model.external: "));
  EXPECT_EQ(external.context(), 3U);
  EXPECT_TRUE(ManifestOf(Gpt2Small()).ok());
}

}  // namespace
}  // namespace atl

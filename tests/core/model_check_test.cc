#include "core/model_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

RunOptions Small() {
  RunOptions run;
  run.model = {.layers = 2, .heads = 2, .width = 64, .context = 32, .vocabulary = 256};
  run.push_codec = CodecKind::kFp32;
  return run;
}

std::string Rejection(const RunOptions& run) { return std::string(CheckModel(run).message()); }

TEST(ModelCheck, ABudgetHoldsTheLargestContribution) {
  RunOptions run = Small();
  uint64_t largest = 0;
  const auto layouts = LayOutModel(run);
  ASSERT_TRUE(layouts.ok()) << layouts.status();
  for (const FragmentLayout& layout : *layouts) largest = std::max(largest, layout.elements * sizeof(float));
  run.contribution_budget_bytes = largest;
  EXPECT_TRUE(CheckModel(run).ok()) << CheckModel(run);
  run.contribution_budget_bytes = largest - 1;
  EXPECT_TRUE(absl::IsInvalidArgument(CheckModel(run)));
  EXPECT_THAT(Rejection(run), AllOf(HasSubstr("limits.contribution_budget_mib"), HasSubstr("at least 1")));
  run.push_codec = CodecKind::kInt4;
  EXPECT_TRUE(CheckModel(run).ok()) << "a shorter contribution";
  run.push_codec = CodecKind::kFp32;
  run.sync.fragments = 2;
  EXPECT_TRUE(CheckModel(run).ok()) << "one fragment at a time";
}

TEST(ModelCheck, NamesTheFieldOfAModelThatCannotBe) {
  RunOptions run = Small();
  run.sync.fragments = 1000;
  EXPECT_THAT(Rejection(run), HasSubstr("sync.fragments: "));
  run = Small();
  run.model = {.layers = 1024, .heads = 2, .width = 65536, .context = 1 << 20, .vocabulary = 65536};
  EXPECT_THAT(Rejection(run), HasSubstr("model.gpt: "));
}

TEST(ModelCheck, AnExternalModelIsMeasuredByTheNumberOfItsParameters) {
  RunOptions run = Small();
  run.model = ModelOptions(ExternalOptions());
  EXPECT_TRUE(CheckModel(run).ok()) << "there is nothing to check";
  EXPECT_TRUE(absl::IsFailedPrecondition(LayOutModel(run).status()));
  run.model.external()->parameters = 1000;
  run.sync.fragments = 3;
  const auto layouts = LayOutModel(run);
  ASSERT_TRUE(layouts.ok()) << layouts.status();
  ASSERT_EQ(layouts->size(), 3U);
  // A third is 334, in slots of 256.
  for (const FragmentLayout& layout : *layouts) EXPECT_EQ(layout.elements, 512U);
  run.contribution_budget_bytes = 2047;
  EXPECT_THAT(Rejection(run), HasSubstr("limits.contribution_budget_mib"));
}

TEST(ModelCheck, ExpectedParametersAreThoseOfTheManifest) {
  const Manifest manifest{{{.name = "a", .shape = {3, 5}}, {.name = "b"}}};
  EXPECT_TRUE(CheckParameters(Small().model, manifest).ok());
  EXPECT_TRUE(CheckParameters(ModelOptions(ExternalOptions()), manifest).ok());
  EXPECT_TRUE(CheckParameters(ModelOptions(ExternalOptions{.parameters = 16}), manifest).ok());
  const absl::Status other = CheckParameters(ModelOptions(ExternalOptions{.parameters = 15}), manifest);
  EXPECT_EQ(std::string(other.message()),
            "model.external.parameters is 15, and the model has 16 in 2 tensors. Correct the model, or "
            "model.external.parameters");
  const Manifest averaging{{{.name = "a", .shape = {3, 5}}, {.name = "mean", .averaged = true}}};
  EXPECT_TRUE(CheckParameters(ModelOptions(ExternalOptions{.parameters = 16}), averaging).ok());
  EXPECT_THAT(
      std::string(CheckParameters(ModelOptions(ExternalOptions{.parameters = 15}), averaging).ToString()),
      HasSubstr("is 15, and the model has 16 in 2 tensors: 15 parameters and 1 averaged value, "
                "which count too"));
}

}  // namespace
}  // namespace atl

#include "client/engine/manifest_check.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

Manifest Three() {
  return {{{.name = "a", .shape = {2, 3}, .embedding = true},
           {.name = "b", .shape = {4}, .embedding = false},
           {.name = "c", .shape = {}, .embedding = false}}};
}

std::string Against(const Manifest& caller) {
  JoinedRun run;
  run.manifest = Three();
  const absl::Status status = CheckAgainstRun(run, caller);
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(ManifestCheckTest, NamesWhatDiffers) {
  EXPECT_EQ(Against(Three()), "");
  Manifest other = Three();
  other.tensors[1].shape = {4, 1};
  EXPECT_THAT(Against(other), HasSubstr("the model is not that of the run: tensor 'b' has shape [4, 1]"));
  other = Three();
  other.base_fingerprint = "0123456789abcdef";
  EXPECT_THAT(Against(other), HasSubstr("base_fingerprint is 0123456789abcdef"));
}

TEST(ManifestCheckTest, AModelThatNobodyHasBroughtIsNotCompared) {
  JoinedRun run;
  run.run.model = ModelOptions(ExternalOptions());
  EXPECT_TRUE(CheckAgainstRun(run, Three()).ok());
}

TEST(ManifestCheckTest, RefusesTensorsThatNoRunCanHave) {
  EXPECT_TRUE(CallerManifest({{.name = "a", .shape = {2}, .flags = ATL_TENSOR_EMBEDDING}}, "").ok());
  EXPECT_THAT(std::string(CallerManifest({{.name = "a", .shape = {2}, .flags = 2}}, "").status().message()),
              HasSubstr("tensor 'a': flags 0x2"));
  EXPECT_THAT(std::string(CallerManifest({{.name = "a", .shape = {0}, .flags = 0}}, "").status().message()),
              HasSubstr("a"));
  EXPECT_FALSE(CallerManifest({{.name = "a", .shape = {1}}}, "short").ok());
  EXPECT_FALSE(CallerManifest({}, "").ok());
}

}  // namespace
}  // namespace atl

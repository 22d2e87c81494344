#include "client/engine/manifest_check.h"

#include "client/sync/rejection.h"
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

TEST(ManifestCheckTest, ARunThatDescribesItsModelSaysSo) {
  JoinedRun run;
  run.manifest = Three();
  Manifest other = Three();
  other.tensors[0].name = "weight";
  other.tensors[0].shape = {7};
  const std::string own =
      ". The run's configuration describes its model (`model.gpt`): a loop of your own needs the same "
      "tensors, under the names of transformers; a run for models of your own has `model: external`";
  EXPECT_THAT(std::string(CheckAgainstRun(run, other).message()),
              HasSubstr("tensor 'a' is missing, and has shape [2, 3] in the run" + own));
  run.run.model = ModelOptions(ExternalOptions());
  EXPECT_THAT(std::string(CheckAgainstRun(run, other).message()), testing::Not(HasSubstr(own)));
}

TEST(ManifestCheckTest, AModelThatNobodyHasBroughtIsNotCompared) {
  JoinedRun run;
  run.run.model = ModelOptions(ExternalOptions());
  EXPECT_TRUE(CheckAgainstRun(run, Three()).ok());
}

TEST(ManifestCheckTest, TheFirstModelHasTheConfiguredNumberOfParameters) {
  JoinedRun run;
  run.run.model = ModelOptions(ExternalOptions{.parameters = 11});
  EXPECT_TRUE(CheckAgainstRun(run, Three()).ok());
  run.run.model.external()->parameters = 12;
  const absl::Status other = CheckAgainstRun(run, Three());
  EXPECT_TRUE(absl::IsInvalidArgument(other)) << other;
  EXPECT_EQ(RejectionReasonOf(other), RejectionReason::kManifestMismatch);
  EXPECT_THAT(std::string(other.message()),
              HasSubstr("the model is not that of the run: model.external.parameters is 12, and the model "
                        "has 11 in 3 tensors"));
}

TEST(ManifestCheckTest, AnOlderCoordinatorCannotAverage) {
  JoinedRun run;
  run.run.model = ModelOptions(ExternalOptions());
  Manifest averaging = Three();
  averaging.tensors[1].averaged = true;
  const absl::Status refused = CheckAgainstRun(run, averaging);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("the coordinator is of an older release, which cannot average tensor 'b'"));
  run.protocol_minor = kMinorWithAveragedTensors;
  EXPECT_TRUE(CheckAgainstRun(run, averaging).ok());
  run.run.round.mode = RoundMode::kAsync;
  run.run.outer.optimizer = OuterOptimizerKind::kSgd;
  EXPECT_THAT(std::string(CheckAgainstRun(run, averaging).message()), HasSubstr("needs delayed_nesterov"));
}

TEST(ManifestCheckTest, AModelThatThisMachineCannotHoldIsRejected) {
  const MemoryLimit limit = {.bytes = 87, .source = "cgroup"};
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckMemory(Three(), limit)));  // 11 values
  EXPECT_THAT(std::string(CheckMemory(Three(), limit).message()),
              HasSubstr("a model of 11 values takes at least 88 B beside the loop's own memory"));
  EXPECT_TRUE(CheckMemory(Three(), {.bytes = 88, .source = "cgroup"}).ok());
  EXPECT_TRUE(CheckMemory(Three(), {.bytes = 1, .source = "a guess", .known = false}).ok());
}

TEST(ManifestCheckTest, FlagsComeBackAsTheyWere) {
  Manifest manifest = Three();
  manifest.tensors[1].averaged = true;
  std::vector<ipc::Tensor> tensors;
  for (const TensorSpec& tensor : manifest.tensors) {
    tensors.push_back({.name = tensor.name, .shape = tensor.shape, .flags = FlagsOf(tensor)});
  }
  EXPECT_EQ(CallerManifest(tensors, "").value(), manifest);
  tensors[1].flags = ATL_TENSOR_EMBEDDING | ATL_TENSOR_AVERAGED;
  EXPECT_THAT(std::string(CallerManifest(tensors, "").status().message()),
              HasSubstr("tensor b is both an embedding and averaged"));
}

TEST(ManifestCheckTest, RefusesTensorsThatNoRunCanHave) {
  EXPECT_TRUE(CallerManifest({{.name = "a", .shape = {2}, .flags = ATL_TENSOR_EMBEDDING}}, "").ok());
  EXPECT_THAT(std::string(CallerManifest({{.name = "a", .shape = {2}, .flags = 4}}, "").status().message()),
              HasSubstr("tensor 'a': flags 0x4"));
  EXPECT_THAT(std::string(CallerManifest({{.name = "a", .shape = {0}, .flags = 0}}, "").status().message()),
              HasSubstr("a"));
  EXPECT_FALSE(CallerManifest({{.name = "a", .shape = {1}}}, "short").ok());
  EXPECT_FALSE(CallerManifest({}, "").ok());
}

}  // namespace
}  // namespace atl

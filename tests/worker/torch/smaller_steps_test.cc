#include "worker/torch/smaller_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/torch/libtorch.h"
#include "worker/torch/torch_status.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(SmallerStepsTest, AreTheSameStepInParts) {
  EXPECT_THAT(SmallerSteps({.batch = 8, .accumulation = 3}),
              AllOf(HasSubstr("inner.batch: 4 and inner.accumulation: 6"),
                    HasSubstr("inner.recompute_activations=true")));
  EXPECT_THAT(SmallerSteps({.batch = 9, .accumulation = 1, .activations = Activations::kRecomputed}),
              AllOf(HasSubstr("inner.batch: 3 and inner.accumulation: 3"), Not(HasSubstr("recompute"))));
  EXPECT_THAT(SmallerSteps({.batch = 1}),
              AllOf(HasSubstr("inner.recompute_activations=true"), HasSubstr("more memory")));
}

TEST(SmallerStepsTest, TheEncodersCanLeaveTheDevice) {
  EXPECT_THAT(SmallerSteps({.batch = 8}, true),
              AllOf(HasSubstr("--encode-on-cpu"), HasSubstr("inner.batch: 4")));
  EXPECT_THAT(SmallerSteps({.batch = 8}), Not(HasSubstr("--encode-on-cpu")));
}

TEST(SmallerStepsTest, AreTheRemedyWhenLibTorchFindsNoMemory) {
  const absl::Status status = CatchTorch(
      "inner step",
      [] {
        torch::empty({int64_t{1} << 60});
        return absl::OkStatus();
      },
      SmallerSteps({.batch = 2}));
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("inner step: "), HasSubstr("inner.batch: 1")));
}

}  // namespace
}  // namespace atl

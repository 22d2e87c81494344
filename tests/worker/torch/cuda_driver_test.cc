#include "worker/torch/cuda_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "worker/torch/device_count.h"
#include "worker/torch/torch_replica.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(CudaDriver, EachCauseHasItsRemedy) {
  EXPECT_THAT(WhyNoCuda({}), AllOf(HasSubstr("LibTorch has no CUDA"), HasSubstr("build it with"),
                                   HasSubstr("dependencies.md, \"GPUs\"")));
  EXPECT_THAT(WhyNoCuda({.built_for = 13000}),
              AllOf(HasSubstr("driver is missing"), HasSubstr("--gpus all")));
  EXPECT_THAT(WhyNoCuda({.built_for = 13000, .has_driver = true, .supported = 12020}),
              AllOf(HasSubstr("too old: it supports CUDA 12.2, and LibTorch was built for CUDA 13.0"),
                    HasSubstr("update the driver")));
  EXPECT_THAT(WhyNoCuda({.built_for = 13000, .has_driver = true, .supported = 13010, .init_error = 803}),
              AllOf(HasSubstr("cuInit returns 803"), HasSubstr("nvidia-smi")));
  for (const int init_error : {0, 100}) {
    EXPECT_THAT(
        WhyNoCuda({.built_for = 13000, .has_driver = true, .supported = 13000, .init_error = init_error}),
        AllOf(HasSubstr("shows no GPU"), HasSubstr("CUDA_VISIBLE_DEVICES")));
  }
  // A driver of an older minor version does.
  EXPECT_THAT(WhyNoCuda({.built_for = 13010, .has_driver = true, .supported = 13000}),
              HasSubstr("shows no GPU"));
}

TEST(CudaDriver, IsAskedThroughItsLibrary) {
  EXPECT_FALSE(ReadCudaFacts("/nowhere/libcuda.so.1").has_driver);
  ::setenv("FAKE_CUDA_INIT", "100", 1);
  ::setenv("FAKE_CUDA_VERSION", "12040", 1);
  const CudaFacts facts = ReadCudaFacts(ATOLL_FAKE_CUDA_DRIVER);
  EXPECT_TRUE(facts.has_driver);
  EXPECT_EQ(facts.init_error, 100);
  EXPECT_EQ(facts.supported, 12040);
}

TEST(CudaDriver, ADeviceThatCannotBeUsedIsRejectedWithTheCause) {
  if (CudaDevices() > 0) GTEST_SKIP() << "needs a machine without a GPU";
  const auto device = ResolveDevice("cuda:1");
  ASSERT_TRUE(absl::IsInvalidArgument(device.status()));
  EXPECT_EQ(device.status().message(), "device 'cuda:1' cannot be used: " + WhyNoCuda(ReadCudaFacts()));
  EXPECT_EQ(ResolveDevice("auto").value(), "cpu");
}

}  // namespace
}  // namespace atl

#ifndef ATOLL_TESTS_WORKER_TORCH_CUDA_DEVICE_H_
#define ATOLL_TESTS_WORKER_TORCH_CUDA_DEVICE_H_

#include <gtest/gtest.h>

#include "worker/torch/torch_replica.h"

namespace atl::testing {

/// Tests that need a CUDA device, and are skipped without one. scripts/gpu_check.sh runs them.
class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!ResolveDevice("cuda").ok()) GTEST_SKIP() << "needs a GPU";
  }
};

}  // namespace atl::testing

#endif  // ATOLL_TESTS_WORKER_TORCH_CUDA_DEVICE_H_

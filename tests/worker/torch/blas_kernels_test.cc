#include "worker/torch/blas_kernels.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "worker/torch/torch_replica.h"

namespace atl {
namespace {

// Runs first thing in this program, as it does in atoll-worker; afterwards nothing better may be left to
// choose.
TEST(BlasKernelsTest, ARestartedProgramHasNothingToGain) {
  ASSERT_FALSE(TorchVersion().empty());  // LibTorch, and with it the BLAS, is linked and loaded
  EXPECT_EQ(BetterOpenBlasCore(), std::nullopt);
}

}  // namespace
}  // namespace atl

int main(int argc, char** argv) {
  atl::RestartWithBestBlasKernels(std::getenv("OPENBLAS_CORETYPE"), argv);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

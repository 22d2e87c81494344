#include "worker/torch/matmul_peak.h"

#include <algorithm>
#include <chrono>
#include <exception>

namespace atl {
namespace {

using WallClock = std::chrono::steady_clock;

// Large enough for a blocked product to reach its speed.
constexpr int64_t kCpuSide = 512;
constexpr int64_t kAcceleratorSide = 8192;
constexpr double kSeconds = 0.03;
constexpr int kFewest = 3;

}  // namespace

double MeasureMatmulPeak(torch::Device device, Precision precision) {
  const torch::NoGradGuard no_gradients;
  const int64_t side = device.is_cpu() ? kCpuSide : kAcceleratorSide;
  const auto type = precision == Precision::kBf16 ? torch::kBFloat16 : torch::kFloat32;
  const auto options = torch::TensorOptions().device(device).dtype(type);
  try {
    const torch::Tensor a = torch::ones({side, side}, options);
    torch::Tensor product = torch::empty({side, side}, options);
    // item() waits for the device.
    const auto multiply = [&] {
      torch::mm_out(product, a, a);
      return product[0][0].item<float>();
    };
    multiply();  // pages and handles are made at the first use
    const double operations = 2.0 * static_cast<double>(side * side * side);
    double best = 0;
    double spent = 0;
    for (int i = 0; i < kFewest || spent < kSeconds; ++i) {
      const WallClock::time_point begin = WallClock::now();
      multiply();
      const double seconds = std::chrono::duration<double>(WallClock::now() - begin).count();
      if (seconds > 0) best = std::max(best, operations / seconds);
      spent += std::max(seconds, 1e-6);
    }
    return best;
  } catch (const std::exception&) {
    return 0;
  }
}

}  // namespace atl

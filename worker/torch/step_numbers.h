#ifndef ATOLL_WORKER_TORCH_STEP_NUMBERS_H_
#define ATOLL_WORKER_TORCH_STEP_NUMBERS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/clock.h"
#include "worker/torch/libtorch.h"
#include "worker/torch/step_totals.h"

namespace atl {

inline constexpr uint32_t kMostStepsAtOnce = 32;

/// How many steps of this duration to queue at once: a worker that is asked to leave waits for them.
inline uint32_t StepsInAQuarterSecond(Duration step) {
  return static_cast<uint32_t>(
      std::clamp(0.25 / std::max(ToSeconds(step), 1e-3), 1.0, double{kMostStepsAtOnce}));
}

/// Loss and squared gradient norm of steps that are queued on a device: the host waits for all of them once,
/// in Read. Methods throw what LibTorch throws.
class StepNumbers {
 public:
  /// For at most so many steps between two Begin. The memory stays where it is.
  StepNumbers(uint32_t steps, const torch::Device& device);

  void Begin();
  /// Takes the numbers of the step that is being queued: float64, without dimensions, on the device. Part of
  /// a StepGraph.
  void Set(const torch::Tensor& loss, const torch::Tensor& squares);
  /// Squared gradient norm of that step: float64, without dimensions.
  torch::Tensor squares() const { return newest_[1]; }
  /// 1 from the first step since Begin on whose numbers are not finite, else 0: float32 [1].
  const torch::Tensor& broken() const { return broken_; }
  /// Keeps the numbers of the step that was queued.
  void Keep();

  /// Of the steps since Begin.
  std::vector<StepTotals> Read() const;

 private:
  int64_t kept_ = 0;
  torch::Tensor newest_;   // loss and squares, float64
  torch::Tensor numbers_;  // [steps, 2]
  torch::Tensor broken_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_STEP_NUMBERS_H_

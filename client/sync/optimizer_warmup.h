#ifndef ATOLL_CLIENT_SYNC_OPTIMIZER_WARMUP_H_
#define ATOLL_CLIENT_SYNC_OPTIMIZER_WARMUP_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/run_options.h"

namespace atl {

/// Inner steps over which a fresh inner optimizer is warmed up in the middle of a run. Adam's second moment
/// knows too few gradients at first, and at the schedule's full learning rate its first steps are the largest
/// it ever takes: linear over 2 / (1 - beta2) steps (Ma and Yarats, "On the adequacy of untuned warmup for
/// adaptive optimization", arXiv 1910.04209), at most one round. SGD needs none: its buffer starts small.
inline uint32_t OptimizerWarmupSteps(const InnerOptions& inner) {
  if (inner.optimizer == InnerOptimizerKind::kSgd || inner.beta2 >= 1) return 0;
  const double steps = std::ceil(2 / (1 - inner.beta2) - 1e-9);
  return static_cast<uint32_t>(std::min<double>(steps, inner.steps));
}

/// The warmup of a worker that joined in the middle of a run without the state of its inner optimizer. Not
/// thread-safe; it goes on where it was after a restart.
class OptimizerWarmup {
 public:
  /// The inner optimizer has no state yet (so it begins), and nobody has said how long to warm it up.
  bool cold() const { return cold_; }
  void SetCold() { cold_ = true; }
  void Begin(uint32_t steps) {
    cold_ = false;
    steps_ = left_ = steps;
  }
  void Resume(uint32_t steps, uint32_t left) {
    cold_ = false;
    steps_ = steps;
    left_ = std::min(left, steps);
  }

  /// What the schedule's learning rate of the next step is multiplied by: 1/steps, 2/steps, ... 1.
  double factor() const { return left_ == 0 ? 1 : static_cast<double>(steps_ - left_ + 1) / steps_; }
  void StepTaken() { left_ -= left_ == 0 ? 0 : 1; }

  uint32_t steps() const { return steps_; }
  uint32_t left() const { return left_; }

 private:
  bool cold_ = true;
  uint32_t steps_ = 0;
  uint32_t left_ = 0;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_OPTIMIZER_WARMUP_H_

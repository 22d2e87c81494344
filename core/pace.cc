#include "core/pace.h"

#include <algorithm>
#include <cmath>

namespace atl {
namespace {

// Halvings of the interval that T is sought in: far below half a step for any H.
constexpr int kHalvings = 60;

double Held(double wanted, uint32_t steps) {
  const double least = std::max(1.0, static_cast<double>(steps) / kPaceRange);
  return std::clamp(wanted, least, std::max(least, static_cast<double>(steps) * kPaceRange));
}

}  // namespace

void PaceEstimate::Add(uint32_t steps, Duration took) {
  if (steps == 0 || took <= Duration(0)) return;
  const double measured = static_cast<double>(steps) / ToSeconds(took);
  rate_ = rate_ == 0 ? measured : rate_ + kWeight * (measured - rate_);
}

uint32_t MostPacedSteps(uint32_t steps) { return steps * kPaceRange; }

uint32_t PacedSteps(double rate, std::span<const double> rates, uint32_t steps) {
  double slowest = rate;
  size_t known = 0;
  for (const double other : rates) {
    if (other <= 0) continue;
    slowest = std::min(slowest, other);
    ++known;
  }
  if (rate <= 0 || known == 0) return steps;
  // The mean grows with T, from steps/4 or below to 4*steps at the T where even the slowest is at its bound.
  double low = 0;
  double high = static_cast<double>(MostPacedSteps(steps)) / slowest;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    double sum = 0;
    for (const double other : rates) {
      if (other > 0) sum += Held(middle * other, steps);
    }
    (sum < static_cast<double>(steps) * static_cast<double>(known) ? low : high) = middle;
  }
  return static_cast<uint32_t>(std::lround(Held(high * rate, steps)));
}

}  // namespace atl

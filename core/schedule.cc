#include "core/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace atoll {

double SchedulePosition(const RunOptions& run, double tokens) {
  return tokens / (static_cast<double>(run.tokens_per_step()) * run.workers);
}

double LearningRateAt(const RunOptions& run, double position) {
  const double peak = run.inner.learning_rate;
  const double floor = peak * run.inner.min_learning_rate_ratio;
  const double warmup = run.inner.warmup_steps;
  const double total = static_cast<double>(run.rounds) * run.inner.steps;
  // The ramp reaches the peak at position warmup - 1; a fractional position just after it must not pass the
  // peak.
  if (position < warmup) return peak * std::min(1.0, (position + 1) / warmup);
  if (position >= total) return floor;
  const double progress = (position - warmup) / (total - warmup);
  return floor + 0.5 * (1 + std::cos(std::numbers::pi * progress)) * (peak - floor);
}

double TokensAtStep(const RunOptions& run, uint64_t committed_tokens, uint32_t step,
                    uint32_t active_workers) {
  return static_cast<double>(committed_tokens) +
         static_cast<double>(step) * static_cast<double>(run.tokens_per_step()) * active_workers;
}

}  // namespace atoll

#include "core/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace atl {
namespace {

struct Point {
  double position = 0;
  double rate = 0;
};

/// Cosine from one point to the other; before and after it the rate of the nearer one.
double Decayed(double position, Point from, Point to) {
  if (position >= to.position) return to.rate;
  const double progress = std::max(0.0, (position - from.position) / (to.position - from.position));
  return to.rate + 0.5 * (1 + std::cos(std::numbers::pi * progress)) * (from.rate - to.rate);
}

}  // namespace

double SchedulePosition(const RunOptions& run, double tokens) {
  return tokens / (static_cast<double>(run.tokens_per_step()) * run.workers);
}

double LearningRateAt(const RunOptions& run, double position) {
  const double peak = run.inner.learning_rate;
  const double floor = peak * run.inner.min_learning_rate_ratio;
  const double warmup = run.inner.warmup_steps;
  const ExtensionOptions& extension = run.extension;
  // The ramp reaches the peak at position warmup - 1; a fractional position just after it must not pass the
  // peak.
  const bool decays_again = extension.at_step > 0 && position >= extension.at_step;
  if (position < warmup && !decays_again) return peak * std::min(1.0, (position + 1) / warmup);
  const double total = run.planned_tokens > 0 ? SchedulePosition(run, static_cast<double>(run.planned_tokens))
                                              : static_cast<double>(run.total_steps());
  if (extension.at_step <= 0) return Decayed(position, {warmup, peak}, {total, floor});
  const double from = std::max(peak * extension.from, floor);
  if (decays_again) return Decayed(position, {extension.at_step, from}, {total, floor});
  const double planned = total - static_cast<double>(extension.steps_added);
  return std::max(from, Decayed(position, {warmup, peak}, {planned, floor}));
}

RunOptions Extended(const RunOptions& run, uint32_t rounds, double position) {
  RunOptions extended = run;
  extended.rounds += rounds;
  if (run.planned_tokens > 0) extended.planned_tokens += rounds * run.tokens_per_round();
  extended.extension.steps_added += uint64_t{rounds} * run.inner.steps;
  // The decay has not begun: nothing to keep continuous.
  if (run.extension.at_step <= 0 && position <= run.inner.warmup_steps) return extended;
  extended.extension.at_step = std::max(position, 1.0);
  extended.extension.from =
      std::clamp(LearningRateAt(run, extended.extension.at_step) / run.inner.learning_rate, 0.0, 1.0);
  return extended;
}

double TokensAtStep(const RunOptions& run, uint64_t committed_tokens, uint32_t step,
                    uint32_t active_workers) {
  return static_cast<double>(committed_tokens) +
         static_cast<double>(step) * static_cast<double>(run.tokens_per_step()) * active_workers;
}

}  // namespace atl

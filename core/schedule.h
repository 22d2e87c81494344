#ifndef ATOLL_CORE_SCHEDULE_H_
#define ATOLL_CORE_SCHEDULE_H_

#include "core/run_options.h"

namespace atl {

/// Position in the run as a (fractional) inner step of the planned run: tokens / (tokens per step * planned
/// workers). Counted in committed tokens, so that a worker which joins or returns is at the right learning
/// rate.
double SchedulePosition(const RunOptions& run, double tokens);

/// Learning rate of the inner step at `position` (0: the first step): linear warmup lr*(position+1)/warmup,
/// then cosine from the peak to min_learning_rate_ratio*peak over the rest of the run's total steps, constant
/// after. This is nanoGPT's schedule over the run's TOTAL inner steps; it is never reset per round.
///
/// An extension never raises the rate: from extension.at_step on, a second cosine leads from the rate there
/// to the floor at the new total, whatever the warmup says. Before it the schedule is the one that was
/// planned, but never below the rate at extension.at_step (a restored checkpoint may lie before several
/// extensions). docs/reference/training.md
double LearningRateAt(const RunOptions& run, double position);

/// The run with `rounds` more, as it is recorded: `position` is where the next round will begin. Requires
/// rounds > 0, and a sum that fits.
RunOptions Extended(const RunOptions& run, uint32_t rounds, double position);

/// Tokens the whole run is taken to have processed before inner step `step` of a round whose base had
/// `committed_tokens`, when `active_workers` take part.
double TokensAtStep(const RunOptions& run, uint64_t committed_tokens, uint32_t step, uint32_t active_workers);

}  // namespace atl

#endif  // ATOLL_CORE_SCHEDULE_H_

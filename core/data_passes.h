#ifndef ATOLL_CORE_DATA_PASSES_H_
#define ATOLL_CORE_DATA_PASSES_H_

#include <cstdint>
#include <string>

#include "core/run_options.h"

namespace atl {

/// How many times the planned run reads a training text of `train_tokens` (above 0). In a run with
/// data.mode: local, each worker has a text of its own, and this is the text of one of run.workers.
double PassesOverData(const RunOptions& run, uint64_t train_tokens);

/// A warning, with what to do, if the run reads its text more than 4 times; empty otherwise. Up to 4 passes
/// repeated text is about as good as new text; further passes soon stop helping (Muennighoff et al., "Scaling
/// Data-Constrained Language Models", arXiv 2305.16264).
std::string PassesWarning(const RunOptions& run, uint64_t train_tokens);

}  // namespace atl

#endif  // ATOLL_CORE_DATA_PASSES_H_

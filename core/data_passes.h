#ifndef ATOLL_CORE_DATA_PASSES_H_
#define ATOLL_CORE_DATA_PASSES_H_

#include <cstdint>
#include <span>
#include <string>

#include "core/run_options.h"

namespace atl {

/// A training text, and the share of a run's samples that come from it.
struct TextShare {
  std::string name;     // of a part of a mixture; empty: the run has this text only
  uint64_t tokens = 0;  // above 0
  double share = 1;
};

/// How many times the planned run reads its training text; of a mixture, the text that it reads most often.
/// In a run with data.mode: local, each worker has texts of its own, and these are the texts of one of
/// run.workers. Requires a text.
double PassesOverData(const RunOptions& run, std::span<const TextShare> texts);

/// A warning, with what to do, if the run reads a text more than 4 times; empty otherwise. Up to 4 passes
/// repeated text is about as good as new text; further passes soon stop helping (Muennighoff et al., "Scaling
/// Data-Constrained Language Models", arXiv 2305.16264).
std::string PassesWarning(const RunOptions& run, std::span<const TextShare> texts);

}  // namespace atl

#endif  // ATOLL_CORE_DATA_PASSES_H_

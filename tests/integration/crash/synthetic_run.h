#ifndef ATOLL_TESTS_INTEGRATION_CRASH_SYNTHETIC_RUN_H_
#define ATOLL_TESTS_INTEGRATION_CRASH_SYNTHETIC_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "core/fragment_plan.h"
#include "core/manifest.h"
#include "core/run_options.h"

// A run in which nothing is trained: what a worker contributes on a base is a function of both names, so that
// whoever knows which contributions counted can compute every version.

namespace atl {

inline constexpr uint32_t kCrashWorkers = 3;

struct SyntheticRun {
  std::string yaml;
  RunOptions options;
  Manifest manifest;
  FragmentLayout layout;
  std::vector<float> seed;  // version 0

  static SyntheticRun Make(uint64_t random_seed);

  /// The pseudo-gradient, gaps zero.
  std::vector<float> Contribution(const WorkerName& worker, Version base) const;
  /// What the worker says it trained on: different for each, so that weights differ.
  uint64_t TokensOf(const WorkerName& worker) const;
  uint32_t StepsOf(const WorkerName& worker) const;

 private:
  std::vector<float> Fill(uint64_t random_seed, float scale) const;
};

WorkerName CrashWorkerName(uint32_t index);

}  // namespace atl

#endif  // ATOLL_TESTS_INTEGRATION_CRASH_SYNTHETIC_RUN_H_

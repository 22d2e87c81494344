#ifndef ATOLL_WORKER_DATA_COMMANDS_OUTPUT_H_
#define ATOLL_WORKER_DATA_COMMANDS_OUTPUT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/progress_bar.h"
#include "worker/data/dataset_description.h"
#include "worker/data/mixture_description.h"

namespace atl {

void PrintDescription(const std::string& folder, const DatasetDescription& description);

void PrintMixture(const std::string& folder, const MixtureDescription& mixture);

/// A progress bar on standard error that appears with the first number.
class LazyBar {
 public:
  LazyBar(std::string label, ProgressUnit unit, const Clock& clock)
      : label_(std::move(label)), unit_(unit), clock_(clock) {}
  void Update(uint64_t done, uint64_t total);
  /// Ends the line, if there is one.
  void Finish();

 private:
  const std::string label_;
  const ProgressUnit unit_;
  const Clock& clock_;
  std::unique_ptr<ProgressBar> bar_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_COMMANDS_OUTPUT_H_

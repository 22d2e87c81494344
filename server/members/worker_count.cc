#include "server/members/worker_count.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"

namespace atl {

absl::Status CheckMostWorkers(uint64_t wanted, const RunOptions& run, std::string_view field) {
  const uint32_t most = std::min(kMostWorkersEver, run.max_workers);
  if (wanted <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: %d workers are more than limits.max_workers, which is %d", std::string(field), wanted, most));
}

absl::Status CheckPartsOfData(uint64_t wanted, uint64_t others, const RunOptions& run,
                              std::string_view field) {
  if (run.data.mode != DataMode::kShared || wanted + others <= run.data.partitions) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s: %d workers%s need a part of the shared data each, and there are %d parts: "
                      "data.partitions is fixed when a run begins",
                      std::string(field), wanted,
                      others > 0 ? absl::StrFormat(" and the %d that others started", others) : std::string(),
                      run.data.partitions));
}

uint32_t MostWorkers(const RunOptions& run) {
  const uint32_t most = std::min(kMostWorkersEver, run.max_workers);
  return run.data.mode == DataMode::kShared ? std::min(most, run.data.partitions) : most;
}

}  // namespace atl

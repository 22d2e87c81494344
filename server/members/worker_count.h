#ifndef ATOLL_SERVER_MEMBERS_WORKER_COUNT_H_
#define ATOLL_SERVER_MEMBERS_WORKER_COUNT_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "core/run_options.h"

namespace atl {

/// Workers in all, of any run: the maximum of limits.max_workers and of run.workers (run.proto). Beyond it a
/// typing error is more likely than a wish.
inline constexpr uint32_t kMostWorkersEver = 10000;

/// Whether a launcher may be asked for `wanted` workers in all; `field` begins the message. InvalidArgument
/// above limits.max_workers. Pure.
absl::Status CheckMostWorkers(uint64_t wanted, const RunOptions& run, std::string_view field);

/// FailedPrecondition when the shared data has too few parts for them and for `others`, which are trainers
/// that the launcher did not start. Pure.
absl::Status CheckPartsOfData(uint64_t wanted, uint64_t others, const RunOptions& run,
                              std::string_view field);

/// The largest number that passes both, without others. Pure.
uint32_t MostWorkers(const RunOptions& run);

}  // namespace atl

#endif  // ATOLL_SERVER_MEMBERS_WORKER_COUNT_H_

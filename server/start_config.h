#ifndef ATOLL_SERVER_START_CONFIG_H_
#define ATOLL_SERVER_START_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/config_codec.h"
#include "core/run_options.h"

namespace atoll {

/// The configuration that a start of the coordinator brought, as it was written and as it was read.
struct StartConfig {
  std::string bytes;  // serialised RunConfig
  RunOptions run;
  bool staleness_open = false;  // it does not give round.staleness_limit
};

/// Of a new run: data.partitions is filled in when the file leaves it open (DefaultPartitions), so that the
/// recorded configuration says what the data order is.
absl::StatusOr<StartConfig> ForNewRun(const StartConfig& file, const ConfigCodec& codec);

/// Of a run that was begun: what the file leaves open stays as it is `recorded` (data.partitions,
/// round.staleness_limit), and so do extensions of run.rounds, which no file has, while the file asks for the
/// rounds that were planned, or for those that the run has. `committed_tokens`: of the run; nullopt: nothing
/// is committed yet. FailedPrecondition, naming the command, when something is committed and the file
///   asks for more steps than the run has     the learning rate would jump up
///   gives less than was trained already      the run would be over at once
/// A file that lowers the budget to more than that is taken: the run ends earlier, and the learning rate
/// falls to the schedule of the shorter run.
absl::StatusOr<StartConfig> ForBegunRun(const StartConfig& file, const ConfigCodec& codec,
                                        const RunOptions& recorded, std::optional<uint64_t> committed_tokens);

}  // namespace atoll

#endif  // ATOLL_SERVER_START_CONFIG_H_

#ifndef ATOLL_SERVER_OPENING_START_CONFIG_H_
#define ATOLL_SERVER_OPENING_START_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/config_codec.h"
#include "core/run_options.h"

namespace atl {

/// The configuration that a start of the coordinator brought, as it was written and as it was read.
struct StartConfig {
  std::string bytes;  // serialised RunConfig
  RunOptions run;
  bool staleness_open = false;     // it does not give round.staleness_limit
  std::vector<std::string> notes;  // what was made of it, and why
};

/// Of a new run: data.partitions is filled in when the file leaves it open (DefaultPartitions), so that the
/// recorded configuration says what the data order is.
absl::StatusOr<StartConfig> ForNewRun(const StartConfig& file, const ConfigCodec& codec);

/// What a start finds of a run that was begun.
struct BegunRun {
  RunOptions recorded;                       // the newest configuration
  RunOptions last_start;                     // as it was recorded at the last start that brought a file
  std::optional<uint64_t> committed_tokens;  // of the run; nullopt: nothing is committed yet
};

/// Of a run that was begun: what the file leaves open stays as it is recorded (data.partitions,
/// round.staleness_limit).
///
/// Once something is committed the token budget stays as well, whatever the file makes of a round's size
/// (run.workers, inner.steps, inner.batch, ...): run.rounds becomes the rounds of the new size that the
/// budget takes, rounded up, and run.planned_tokens records the budget. So a finished run stays finished. The
/// learning rate goes on from where it is: the second decay of core/schedule.h begins at the next round. Only
/// what the file says of the rate itself changes it. `notes` says all of this for the operator.
///
/// Fewer run.rounds than the file had before end the run earlier. FailedPrecondition, naming what works, when
/// the file
///   asks for more rounds than it did    `atollctl run extend` does that; also when the run was extended and
///                                       has more still, which the file would take back
///   leaves less than was trained        the run would be over at once
///   makes one round exceed the budget   the budget could not be kept
absl::StatusOr<StartConfig> ForBegunRun(const StartConfig& file, const ConfigCodec& codec,
                                        const BegunRun& run);

/// What was set while the run went on since the last start, and what a changed file takes back because it
/// still says what it said then: "round.deadline_s: 25 -> 600". Without run.*, of which ForBegunRun tells.
/// Configurations: of the last start, the newest, and that of this start.
absl::StatusOr<std::vector<ConfigChange>> TakenBack(const ConfigCodec& codec, const std::string& last_bytes,
                                                    const std::string& newest_bytes,
                                                    const std::string& start_bytes);

/// For the operator: these settings, and how to keep them. Requires one at least.
std::string TakenBackNote(const std::vector<ConfigChange>& settings);

/// Whether this is the file that the last start brought, which recorded `last_bytes`.
absl::StatusOr<bool> IsFileOfLastStart(const StartConfig& file, const ConfigCodec& codec,
                                       const std::string& last_bytes);

}  // namespace atl

#endif  // ATOLL_SERVER_OPENING_START_CONFIG_H_

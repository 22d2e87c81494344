#ifndef ATOLL_CLI_PLAN_H_
#define ATOLL_CLI_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/data_passes.h"
#include "core/memory_bounds.h"
#include "core/memory_plan.h"
#include "core/run_options.h"

// Estimates what a run needs before it starts. Pure.

namespace atl {

/// Assumptions that the configuration does not contain.
struct PlanAssumptions {
  uint32_t workers = 0;                         // 0: as many as have run.workers ranks in all
  uint32_t ranks = 1;                           // of each worker; above 0
  double bandwidth_bits_per_s = 1e9;            // of each worker, each way
  double coordinator_bandwidth_bits_per_s = 0;  // 0: the same
  double latency_s = 0.05;                      // round trip
  double step_s = 0;                            // of an inner step; 0: unknown
  uint64_t parameters = 0;                      // of an external model; 0: model.external.parameters
  double evaluation_batch_s = 0;      // 0: a third of step_s, because a step also runs the backward pass
  std::vector<TextShare> texts = {};  // of the training data (core/data_passes.h); empty: unknown
};

struct PlannedDisk {
  uint64_t directory_bytes = 0;     // of a data directory without tensors
  uint64_t reserve_bytes = 0;       // kept free: with less space, no contribution is accepted
  uint64_t version_bytes = 0;       // theta and outer state
  uint64_t versions = 0;            // retained versions and the one being written
  uint64_t contribution_bytes = 0;  // kept for replay, and of the open round
  uint64_t checkpoints = 0;         // automatic ones, at the run's end
  uint64_t kept_checkpoints = 0;    // of these, kept permanently (checkpoint.keep_every)
  // Size of one checkpoint after the run has deleted everything that it shared with it.
  uint64_t checkpoint_bytes = 0;
  uint64_t replaced = 0;  // checkpoints that stay until their replacement is complete
  /// A run cannot finish on a smaller disk.
  uint64_t peak() const {
    return directory_bytes + reserve_bytes + version_bytes * versions + contribution_bytes +
           checkpoint_bytes * (checkpoints + replaced);
  }
  /// Remedy if the disk is too small: "a larger disk, or fewer checkpoint.keep_versions".
  std::string remedy() const;
};

/// Time of one round without stragglers: from one push of a parameter to its next.
struct PlannedTime {
  bool overlapped = false;
  // Of all fragments (blocking), or of one fragment during training (overlapped).
  double pull_s = 0;
  double push_s = 0;
  double merge_s = 0;  // includes the commit; tensors are written later
  // Time of all workers' bytes of a round on the slower link, in one direction.
  double link_s = 0;
  // Of the training thread.
  double compute_s = 0;   // 0: the time of a step is unknown
  double own_s = 0;       // measuring, encoding and saving contributions, applying published versions
  double evaluate_s = 0;  // of the worker that evaluates, per round; the others wait for it
  double between_pushes_s =
      0;  // of a fragment, overlapped (overlap_forecast.h); 0: the time of a step is unknown

  double exchange_s() const { return pull_s + push_s + merge_s; }
  /// Time of the training thread without waiting.
  double busy_s() const { return compute_s + own_s + evaluate_s; }
  double round_s() const;
  /// As in the workers' TimeUse: time of a round's inner steps, divided by the total time.
  double utilisation() const { return compute_s > 0 ? compute_s / round_s() : 0; }
  /// In overlapped mode: exchanges take longer than the inner steps between two pushes, so pushes are
  /// skipped.
  bool starved() const { return overlapped && round_s() > 1.01 * busy_s(); }
};

/// Of the whole run with privacy (core/privacy.h).
struct PlannedPrivacy {
  double clip_norm = 0;
  double noise_multiplier = 0;
  double delta = 0;
  double epsilon = 0;                                      // against readers of pushes
  std::optional<double> published_epsilon = std::nullopt;  // nullopt: no bound is known for this merge
};

struct RunPlan {
  std::string name;
  PlanAssumptions assumptions;  // filled in
  uint64_t rounds = 0;          // of these workers, until the run's tokens are spent
  uint32_t run_rounds = 0;      // run.rounds: the same if run.workers is the number of all ranks
  uint32_t inner_steps = 0;
  uint64_t total_tokens = 0;
  uint64_t round_tokens = 0;  // of all ranks of all workers
  uint64_t parameters = 0;
  uint64_t elements = 0;        // with padding
  uint64_t step_tokens = 0;     // of an inner step of a rank
  double token_operations = 0;  // floating-point, of a forward and a backward pass; 0: not known
  std::vector<std::pair<std::string, uint64_t>> groups;
  uint64_t push_bytes = 0;  // of one worker and round, whatever the number of its ranks
  uint64_t pull_bytes = 0;
  uint64_t data_parallel_bytes =
      0;  // per worker and round: float32 gradients in both directions at every inner step
  CoordinatorMemory coordinator;
  MemoryBounds bounds;                                // for the recommended memory limit
  std::optional<WorkerMemory> worker = std::nullopt;  // nullopt: an external model's workers are not Atoll's
  std::string devices;                                // DeviceAdvice of its worker; empty without one
  PlannedDisk disk;
  PlannedTime time;
  double data_parallel_utilisation = 0;  // with an exchange at every step over the same links; 0: unknown
  std::optional<PlannedPrivacy> privacy = std::nullopt;  // nullopt: no noise
  std::optional<double> passes = std::nullopt;  // over the training text; nullopt: its size is unknown
  std::vector<std::string> warnings;
};

/// InvalidArgument: an external model without a number of parameters or with several ranks, or neither
/// `assumptions.workers` nor a run.workers that is a multiple of `assumptions.ranks`.
absl::StatusOr<RunPlan> MakePlan(const RunOptions& run, const PlanAssumptions& assumptions);

std::vector<std::string> RenderPlan(const RunPlan& plan);
/// One JSON object; sizes in bytes, times in seconds.
std::string PlanToJson(const RunPlan& plan);

/// Parses "100Mbit/s", "1.5 Gbit/s", "250 MB/s" to bits per second. InvalidArgument names the text and the
/// allowed values.
absl::StatusOr<double> ParseBandwidth(const std::string& text);
/// Parses "50ms", "0.2 s", "7d" to seconds. An error suggests `example`.
absl::StatusOr<double> ParseSpan(const std::string& text, const char* example = "50ms or 0.2s");

}  // namespace atl

#endif  // ATOLL_CLI_PLAN_H_

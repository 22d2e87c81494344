#ifndef ATOLL_SERVER_CREATE_COORDINATOR_H_
#define ATOLL_SERVER_CREATE_COORDINATOR_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/log.h"
#include "core/config_codec.h"
#include "core/payload_stats.h"
#include "core/run_options.h"
#include "server/coordinator.h"
#include "server/events/observer.h"
#include "server/launch/launcher.h"
#include "storage/run_store.h"

namespace atl {

/// How a coordinator serves its run. Fixed while it lives, and no part of the run's configuration.
struct ServingOptions {
  std::string data_directory;  // for people

  uint32_t launch_workers = 0;                    // that the start asks of the launcher
  uint32_t fragments = 0;                         // of a new run; 0: run.sync.fragments
  uint64_t chunk_elements = uint64_t{1} << 18;    // of a new run: float32 values in one stored chunk
  uint32_t merge_threads = 0;                     // 0: min(shards, processors)
  Duration tick = Seconds(0.05);                  // how often time is looked at
  Duration heartbeat{};                           // asked of workers; 0: a third of the lease
  Duration storage_retry = Seconds(1);            // between attempts while the disk refuses
  Duration final_evaluation_wait = Seconds(120);  // at most, before RUN_FINISHED is announced
  /// Contributions whose norm is above this are refused as not finite.
  double max_contribution_norm = kMaxContributionNorm;
  /// A worker may consist of so many processes, and its contribution then counts that many times the tokens
  /// of one. A worker with more cannot join. The program's default is another one
  /// (server/program/security.h).
  uint32_t max_ranks = 1;
};

struct CoordinatorOptions : ServingOptions {
  RunOptions run;               // checked by the parser of the configuration
  std::string config_bytes;     // the same as serialised RunConfig: what workers get and the store keeps
  bool staleness_open = false;  // the file leaves round.staleness_limit to the run
  std::string import_path;      // safetensors that seed a run without parameters; empty: a worker seeds it
};

struct CoordinatorDeps {
  std::unique_ptr<RunStore> store;
  const Clock* clock = nullptr;  // outlives the coordinator
  Logger log;
  CoordinatorObserver* observer = nullptr;  // outlives the coordinator; null: nobody counts
  /// Starts and stops workers; null: none. Its events go to the run's log. The owner that stops the
  /// coordinator calls its Shutdown first, so that workers can still say goodbye.
  std::unique_ptr<Launcher> launcher;
  /// Reads and changes recorded configurations. Outlives the coordinator. Null: of an earlier start's
  /// configuration only what the store itself knows (shards) is compared, and none can be set.
  const ConfigCodec* config_codec = nullptr;
};

/// Opens the run in the store, or begins one when the store is empty: recovers the newest version (replaying
/// rounds whose tensors were not stored yet, and comparing the bits with what was committed), opens the
/// rounds, starts the threads. Blocks until the coordinator can serve.
///   InvalidArgument     an option is out of range
///   FailedPrecondition  the configuration does not fit the run that is in the store: names the field
///   DataLoss            what is on disk does not give the version that was committed: names it
absl::StatusOr<std::unique_ptr<Coordinator>> CreateCoordinator(CoordinatorOptions options,
                                                               CoordinatorDeps deps);

}  // namespace atl

#endif  // ATOLL_SERVER_CREATE_COORDINATOR_H_

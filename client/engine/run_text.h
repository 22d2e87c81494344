#ifndef ATOLL_CLIENT_ENGINE_RUN_TEXT_H_
#define ATOLL_CLIENT_ENGINE_RUN_TEXT_H_

#include <string>

#include "client/setup/worker_totals.h"
#include "client/sync/connection.h"
#include "core/manifest.h"
#include "core/protocol/heartbeat.h"

namespace atl {

/// The run as the caller sees it (atl_run_json): "run", "run_id", "worker", "epoch", "config_version",
/// "config" (every field of the run's configuration, by its YAML name), "tensors", and with shared data
/// "partition", "partitions".
std::string RunJson(const JoinedRun& run, const Manifest& manifest);

/// What atl_status shows: "phase", "waiting_for", "version", "local_step", "local_steps", "step", "loss",
/// "gradient_norm", "learning_rate", "tokens", "tokens_per_second", "utilisation", "pushed_bytes",
/// "pulled_bytes", "last_end" (null while the worker runs).
std::string StatusJson(const ProgressReport& progress, const WorkerTotals& totals,
                       const std::string& last_end);

}  // namespace atl

#endif  // ATOLL_CLIENT_ENGINE_RUN_TEXT_H_

#ifndef ATOLL_CLIENT_ENGINE_SNAPSHOT_SERVICE_H_
#define ATOLL_CLIENT_ENGINE_SNAPSHOT_SERVICE_H_

#include "absl/status/statusor.h"
#include "client/engine/engine_options.h"
#include "client/ipc/messages.h"
#include "client/ipc/shared_memory.h"
#include "common/log.h"

namespace atl {

/// Pulls the newest published version of every fragment as an observer, into `values`. Tries again while the
/// coordinator does not answer, for a minute (wait-forever: for ever).
absl::StatusOr<ipc::Snapshot> PullSnapshot(const EngineOptions& options, ipc::SharedMemory& values,
                                           const Logger& log);

}  // namespace atl

#endif  // ATOLL_CLIENT_ENGINE_SNAPSHOT_SERVICE_H_

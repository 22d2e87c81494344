#ifndef ATOLL_CLIENT_ENGINE_SNAPSHOT_SERVICE_H_
#define ATOLL_CLIENT_ENGINE_SNAPSHOT_SERVICE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "client/engine/engine_options.h"
#include "client/ipc/messages.h"
#include "common/log.h"

namespace atl {

struct CallerChannel;

/// Pulls the newest published version of every fragment as an observer, into the channel's values. Tries
/// again while the coordinator does not answer or has no version, for a minute (wait-forever: for ever).
/// Cancelled when `caller` is not the parent of this process any more, or has closed the channel.
absl::StatusOr<ipc::Snapshot> PullSnapshot(const EngineOptions& options, int64_t caller,
                                           CallerChannel& channel, const Logger& log);

}  // namespace atl

#endif  // ATOLL_CLIENT_ENGINE_SNAPSHOT_SERVICE_H_

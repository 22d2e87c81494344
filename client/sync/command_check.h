#ifndef ATOLL_CLIENT_SYNC_COMMAND_CHECK_H_
#define ATOLL_CLIENT_SYNC_COMMAND_CHECK_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/sync/context.h"

namespace atl {

/// Asked before each inner step: whether a command ends the steps here. Waits while the run is paused.
/// `check_membership` follows what heartbeats learnt about the membership; its error comes back.
absl::StatusOr<bool> CommandEndsSteps(
    const std::function<absl::Status(const WorkerCommands&)>& check_membership, const WorkerContext& context);

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_COMMAND_CHECK_H_

#ifndef ATOLL_SERVER_ADMIN_RESTORE_H_
#define ATOLL_SERVER_ADMIN_RESTORE_H_

#include <string>

#include "absl/status/statusor.h"
#include "server/admin/admin_control.h"
#include "server/coordinator_context.h"

namespace atl {

class RoundDriver;

/// Puts the contents of a checkpoint in the place of the run's, while it is served. Reads and replays the
/// checkpoint first; then stops the rounds between two versions, with no acceptance in flight; commits
/// tensors, optimizer state, committed tokens and partitions as version head + 1 of every fragment under a
/// new random epoch, in one synced batch; and lets the rounds go on from there. Until that batch nothing is
/// changed, and any error leaves the run as it was. Members stay members, but every call of theirs in the old
/// epoch is refused with WRONG_EPOCH, so that they join again. The configuration stays what it is.
absl::StatusOr<RestoreResult> RestoreRun(const CoordinatorContext& context, RoundDriver& driver,
                                         const std::string& checkpoint);

/// FailedPrecondition when the checkpoint is not one of the context's run.
absl::Status CheckSameRun(const OpenedCheckpoint& checkpoint, const CoordinatorContext& context);

}  // namespace atl

#endif  // ATOLL_SERVER_ADMIN_RESTORE_H_

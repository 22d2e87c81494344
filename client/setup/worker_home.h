#ifndef ATOLL_CLIENT_SETUP_WORKER_HOME_H_
#define ATOLL_CLIENT_SETUP_WORKER_HOME_H_

#include "absl/status/statusor.h"
#include "client/setup/member_flags.h"
#include "client/sync/identity.h"
#include "client/sync/worker.h"
#include "common/log.h"

namespace atl {

/// What a worker's process holds before it meets a coordinator: the lock of its state directory, and what it
/// says of itself.
struct WorkerHome {
  StateDirectory state;
  /// All but the device and the data, which only the trainer knows.
  WorkerOptions options;
};

/// Opens the state directory of --state-dir, or makes it. The error carries the program's exit code
/// (setup_error.h). AlreadyExists: another process holds it.
absl::StatusOr<WorkerHome> OpenWorkerHome(const MemberFlags& flags, const Logger& log);

}  // namespace atl

#endif  // ATOLL_CLIENT_SETUP_WORKER_HOME_H_

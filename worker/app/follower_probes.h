#ifndef ATOLL_WORKER_APP_FOLLOWER_PROBES_H_
#define ATOLL_WORKER_APP_FOLLOWER_PROBES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/metrics/worker_monitoring.h"
#include "client/setup/ready_file.h"
#include "client/sync/observer.h"
#include "common/clock.h"
#include "common/log.h"
#include "worker/app/commands.h"

namespace atl {

/// What a kubelet asks of a rank but the first: the address of --metrics-listen answers while the process
/// lives, and the file of --ready-file is there while its island is formed. One rank of each host has them,
/// because all ranks of a host have the same options: rank 0 where it is, else the first of its host.
class FollowerProbes {
 public:
  /// Nothing to do when neither option is given. An address in use is a warning: with --island, nothing says
  /// that another rank of this host serves it.
  static absl::StatusOr<std::unique_ptr<FollowerProbes>> Start(const WorkerFlags& flags, const Clock* clock,
                                                               const Logger& log);

 private:
  FollowerProbes(const std::string& ready_file, const Logger& log) : ready_(ready_file, &nobody_, log) {}

  WorkerObserver nobody_;
  ReadyFile ready_;
  std::unique_ptr<WorkerMonitoring> monitoring_;  // null: not served
};

}  // namespace atl

#endif  // ATOLL_WORKER_APP_FOLLOWER_PROBES_H_

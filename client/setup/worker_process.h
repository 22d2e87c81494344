#ifndef ATOLL_CLIENT_SETUP_WORKER_PROCESS_H_
#define ATOLL_CLIENT_SETUP_WORKER_PROCESS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/metrics/worker_monitoring.h"
#include "client/rpc/grpc_connection.h"
#include "client/setup/identity_claim.h"
#include "client/setup/member_flags.h"
#include "client/setup/ready_file.h"
#include "client/setup/timed_drain.h"
#include "client/setup/worker_totals.h"
#include "client/sync/identity.h"
#include "client/sync/worker.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/sleeper.h"
#include "protos/transport/channel_security.h"

namespace atl {

struct WorkerProcessOptions {
  std::string program;  // its name in the metrics
  MemberFlags flags;
  WorkerOptions worker;
  const StateDirectory* state = nullptr;  // claimed at the first Join; outlives the process object
  ReplicaFactory make_replica;
  StuckWorker stuck = {};
  Logger log;
};

/// One worker with everything around it: connections, metrics, ready file, drain. What the options name is
/// checked and opened by Create; the coordinator is met in Run.
class WorkerProcess {
 public:
  /// The error carries the program's exit code (setup_error.h). `clock` outlives this object.
  static absl::StatusOr<std::unique_ptr<WorkerProcess>> Create(WorkerProcessOptions options,
                                                               const Clock* clock);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Blocks for the worker's whole life; once.
  WorkerEnd Run();

  const Worker& worker() const { return *worker_; }
  const WorkerTotals& totals() const { return *totals_; }
  /// May outlive this object, and does nothing then.
  const std::shared_ptr<TimedDrain>& drain() const { return drain_; }

 private:
  explicit WorkerProcess(const Clock* clock) : clock_(clock) {}
  void Connect(const MemberFlags& flags, const DeviceDescription& device);

  // In the order in which they are made; they go in the reverse order.
  const Clock* const clock_;
  std::shared_ptr<ChannelSecurity> security_;
  std::unique_ptr<WorkerMonitoring> monitoring_;
  InterruptibleSleeper sleeper_;
  std::unique_ptr<GrpcConnection> data_;
  std::unique_ptr<GrpcConnection> control_;
  std::unique_ptr<IdentityClaim> claim_;
  std::unique_ptr<ReadyFile> ready_;
  std::unique_ptr<WorkerTotals> totals_;
  std::unique_ptr<Worker> worker_;
  std::shared_ptr<TimedDrain> drain_;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SETUP_WORKER_PROCESS_H_

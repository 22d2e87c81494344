#ifndef ATOLL_CLIENT_ENGINE_WORKER_SERVICE_H_
#define ATOLL_CLIENT_ENGINE_WORKER_SERVICE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/engine/caller_link.h"
#include "client/engine/engine_options.h"
#include "client/ipc/message_socket.h"
#include "client/ipc/shared_memory.h"
#include "client/ipc/status_page.h"
#include "client/setup/worker_home.h"
#include "client/setup/worker_process.h"
#include "common/clock.h"
#include "common/exit_codes.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/sleeper.h"
#include "core/manifest.h"

namespace atl {

/// What the engine was started with; outlives everything that uses it.
struct CallerChannel {
  ipc::MessageSocket socket{ipc::kSocketDescriptor};
  ipc::SharedMemory values{ipc::kValuesDescriptor};
  ipc::SharedMemory state{ipc::kStateDescriptor};
  ipc::SharedMemory status{ipc::kStatusDescriptor};
};

/// A worker whose model, optimizer and data are the caller's.
class WorkerService {
 public:
  /// Checks the options and the tensors, and takes the state directory. The error carries the program's exit
  /// code (setup_error.h). `channel` outlives this object.
  static absl::StatusOr<std::unique_ptr<WorkerService>> Open(const EngineOptions& options, Manifest manifest,
                                                             CallerChannel* channel, const Logger& log);
  /// Blocks for the worker's whole life: events until ATL_EVENT_END. Ends early when process `caller` ends.
  /// Once.
  ExitCode Run(int64_t caller);

 private:
  WorkerService(WorkerHome home, Manifest manifest, CallerChannel* channel, const Logger& log);
  CallerRequests Requests();
  absl::StatusOr<std::unique_ptr<Replica>> MakeReplica(const JoinedRun& run);
  void Failed(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  ipc::Event EndEvent(const WorkerEnd& end) ABSL_LOCKS_EXCLUDED(mutex_);
  void ShowStatus(const std::string& last_end) ABSL_LOCKS_EXCLUDED(mutex_);
  void KeepStatusFresh();

  const SystemClock clock_{};
  WorkerHome home_;  // its options are the process's from Open on; the lock stays
  const Manifest manifest_;
  CallerChannel* const channel_;
  const Logger log_;
  std::unique_ptr<WorkerProcess> process_;
  std::unique_ptr<CallerLink> link_;
  InterruptibleSleeper between_statuses_;
  bool said_nothing_held_out_ = false;  // of the training thread
  Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // the caller's
  bool stop_asked_ ABSL_GUARDED_BY(mutex_) = false;
  bool drain_asked_ ABSL_GUARDED_BY(mutex_) = false;
  ipc::StatusPage page_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_CLIENT_ENGINE_WORKER_SERVICE_H_

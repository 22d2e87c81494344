#ifndef ATOLL_TESTS_INTEGRATION_CRASH_SYNTHETIC_WORKER_H_
#define ATOLL_TESTS_INTEGRATION_CRASH_SYNTHETIC_WORKER_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/rpc/grpc_connection.h"
#include "common/clock.h"
#include "tests/integration/crash/promises.h"
#include "tests/integration/crash/synthetic_run.h"

namespace atl {

/// One worker over a real connection, on a thread of its own: joins, seeds when told to, pulls, contributes,
/// and tries again whatever happens to the coordinator. Notes every promise.
class SyntheticWorker {
 public:
  /// Everything outlives it. `security` may be null: plain text.
  SyntheticWorker(const SyntheticRun* run, Promises* promises, const std::string& address, uint32_t index,
                  const std::shared_ptr<const ChannelSecurity>& security = nullptr);
  ~SyntheticWorker();

  /// What a version's bits were that it should not have got; empty: nothing.
  std::string complaint() const;

 private:
  void Run();
  absl::Status Round();
  absl::Status EnsureMember();
  absl::Status SeedIfAsked();
  absl::StatusOr<bool> PullNext();
  absl::Status PushUntilKnown();
  void Pause();

  const SyntheticRun* const run_;
  Promises* const promises_;
  const WorkerName name_;
  const SystemClock clock_{};
  std::unique_ptr<GrpcConnection> connection_;

  std::optional<JoinedRun> info_;  // absent: to join
  std::optional<Version> base_;    // pulled, perhaps contributed to
  bool contributed_ = false;       // what became of the contribution on it is known
  std::vector<std::byte> payload_;

  mutable Mutex mutex_;
  std::string complaint_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> stop_ = false;
  std::thread thread_;  // last
};

}  // namespace atl

#endif  // ATOLL_TESTS_INTEGRATION_CRASH_SYNTHETIC_WORKER_H_

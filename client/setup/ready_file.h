#ifndef ATOLL_CLIENT_SETUP_READY_FILE_H_
#define ATOLL_CLIENT_SETUP_READY_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "client/sync/forwarding_observer.h"
#include "common/log.h"
#include "common/mutex.h"

namespace atl {

/// A file that is there while the worker is a member of its run and the coordinator answers its heartbeats:
/// for a supervisor (a kubelet's exec probe) to look at. A removed file is back with the next heartbeat.
/// Hands everything on to the next observer.
class ReadyFile final : public ForwardingObserver {
 public:
  /// So many heartbeats in a row unanswered, and the file is gone.
  static constexpr int kPatience = 3;

  /// InvalidArgument if `path` is a symbolic link, or a file that no worker left: theirs are empty.
  static absl::Status Check(const std::string& path);

  /// Removes a file that an earlier life left. `next` outlives this. An empty path: no file. Requires that
  /// Check said OK.
  ReadyFile(std::string path, WorkerObserver* next, const Logger& log);
  ~ReadyFile() override;

  void OnJoined(const JoinedRun& info, bool rejoin) override;
  void OnHeartbeat(bool ok, Duration round_trip) override;

 private:
  void Set(bool ready) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const Logger log_;

  Mutex mutex_;
  bool joined_ ABSL_GUARDED_BY(mutex_) = false;
  bool there_ ABSL_GUARDED_BY(mutex_) = false;
  bool warned_ ABSL_GUARDED_BY(mutex_) = false;  // it cannot be made
  int unanswered_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SETUP_READY_FILE_H_

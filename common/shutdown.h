#ifndef ATOLL_COMMON_SHUTDOWN_H_
#define ATOLL_COMMON_SHUTDOWN_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "common/clock.h"

namespace atl {

/// Turns SIGTERM, SIGINT and SIGHUP into something to wait for, and ignores SIGPIPE. A second signal ends the
/// process at once with exit code 130, but for SIGHUP. A SIGHUP that is ignored (nohup) stays so. One at a
/// time per process, made in main before other threads matter; handlers are restored by the destructor.
/// Children that exec get the default handlers (but inherit the ignored SIGPIPE). Thread-safe.
class Shutdown {
 public:
  /// FailedPrecondition when one is already installed.
  static absl::StatusOr<std::unique_ptr<Shutdown>> Install();
  ~Shutdown();
  Shutdown(const Shutdown&) = delete;
  Shutdown& operator=(const Shutdown&) = delete;

  /// As if a first signal had come.
  void Request();
  bool requested() const;
  /// The signal that came; 0 when none did (yet), or after Request().
  int signal() const;
  /// Blocks until requested.
  void Wait();
  /// True when requested before the time is out.
  bool WaitFor(Duration timeout);
  /// Called once, on a thread of this class, when requested (at once when it already is). It must not block
  /// for long and must not destroy this object. Callbacks run in the order in which they were added.
  void OnRequest(std::function<void()> callback);

 private:
  Shutdown();
  void Watch();

  struct State;
  std::unique_ptr<State> state_;
  std::thread watcher_;
};

}  // namespace atl

#endif  // ATOLL_COMMON_SHUTDOWN_H_

#ifndef ATOLL_COMMON_SHUTDOWN_H_
#define ATOLL_COMMON_SHUTDOWN_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "absl/status/statusor.h"
#include "common/clock.h"

namespace atl {

/// Turns SIGTERM, SIGINT and SIGHUP into an event that code can wait for, and ignores SIGPIPE. A second
/// signal, except SIGHUP, ends the process immediately with exit code 130, and says so on stderr. The same
/// signal within half a second counts as one: timeout(1) sends it twice. An ignored SIGHUP (nohup) stays
/// ignored. At most one per process, created early in main. The destructor restores the handlers; after a
/// signal it leaves them, and they ignore further signals, because a program that ends has an exit code of
/// its own by then. Children that exec get the default handlers but inherit the ignored SIGPIPE. Thread-safe.
class Shutdown {
 public:
  /// FailedPrecondition when one is already installed. `repeater`: a parent process that passes its first
  /// signal on and ends at a second one. While it lives, further signals of this process are that first one
  /// again (systemd and pkill signal parent and child) and are ignored.
  static absl::StatusOr<std::unique_ptr<Shutdown>> Install(std::optional<pid_t> repeater = std::nullopt);
  ~Shutdown();
  Shutdown(const Shutdown&) = delete;
  Shutdown& operator=(const Shutdown&) = delete;

  /// Acts like a first signal.
  void Request();
  bool requested() const;
  /// The received signal; 0 if there was none, or after Request().
  int signal() const;
  /// Blocks until requested.
  void Wait();
  /// Returns whether a shutdown was requested before the timeout.
  bool WaitFor(Duration timeout);
  /// Adds a callback that runs once on this class's thread when a shutdown is requested, or immediately if it
  /// was already. It must not block for long or destroy this object. Callbacks run in the order of their
  /// addition.
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

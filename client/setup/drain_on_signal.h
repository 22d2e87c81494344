#ifndef ATOLL_CLIENT_SETUP_DRAIN_ON_SIGNAL_H_
#define ATOLL_CLIENT_SETUP_DRAIN_ON_SIGNAL_H_

#include <memory>

#include "client/sync/worker.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/shutdown.h"
#include "common/sleeper.h"

namespace atl {

/// Turns the first SIGTERM, SIGINT or SIGHUP into a worker's drain: it pushes what is done of its round, for
/// at most `grace`, then stops within about a second, whether or not the coordinator answers. (A second
/// signal ends the process at once: common/shutdown.h.)
class DrainOnSignal {
 public:
  /// `worker` and `sleeper` (which its waits use) outlive this object.
  DrainOnSignal(Worker* worker, InterruptibleSleeper* sleeper, Duration grace, const Logger& log);
  /// From here on a signal has no effect on the worker.
  ~DrainOnSignal();
  DrainOnSignal(const DrainOnSignal&) = delete;
  DrainOnSignal& operator=(const DrainOnSignal&) = delete;

  /// Once.
  void Listen(Shutdown& shutdown);

 private:
  struct State;
  const std::shared_ptr<State> state_;  // shared with the callback, which may outlive this object
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SETUP_DRAIN_ON_SIGNAL_H_

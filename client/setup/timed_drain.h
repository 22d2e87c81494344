#ifndef ATOLL_CLIENT_SETUP_TIMED_DRAIN_H_
#define ATOLL_CLIENT_SETUP_TIMED_DRAIN_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "client/sync/worker.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/sleeper.h"
#include "common/task_queue.h"

namespace atl {

/// A worker that was stopped and is still there: its inner step, or a call of LibTorch's, does not end.
struct StuckWorker {
  /// Longer than the transport takes to give up a push that fills the socket.
  Duration after = Seconds(45);
  /// Null: wait for as long as it takes.
  std::function<void()> end;
  /// Ends the process, with the exit code of a push that does not count. Nobody can end one thread of it.
  static void EndProcess();
};

/// Lets a worker push what is done of its round, for at most `grace`, then stops it within about a second,
/// whether or not the coordinator answers. If that has no effect, it does what `stuck` says. Thread-safe.
class TimedDrain {
 public:
  /// `worker` outlives this object, or the call of Detach; `sleeper`, which the worker's waits use, outlives
  /// this.
  TimedDrain(Worker* worker, InterruptibleSleeper* sleeper, Duration grace, const Logger& log,
             StuckWorker stuck = {});
  ~TimedDrain();
  TimedDrain(const TimedDrain&) = delete;
  TimedDrain& operator=(const TimedDrain&) = delete;

  /// Returns at once. With a grace of 0 it stops the worker. Only the first call counts.
  void Drain() ABSL_LOCKS_EXCLUDED(mutex_);
  /// Whether a drain had no time left, or never any: what was done may be lost.
  bool ran_out() const { return ran_out_; }
  /// Stops the worker without a push. Returns at once. `why` is told to the run.
  void Stop(std::string_view why = "") ABSL_LOCKS_EXCLUDED(mutex_);
  /// From here on nothing happens to the worker. Waits for a call in progress.
  void Detach() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  enum class Begun : uint8_t { kNothing, kPush, kStop };  // kStop: there is nothing to push
  void AwaitEnd();
  Begun Begin() ABSL_LOCKS_EXCLUDED(mutex_);

  InterruptibleSleeper* const sleeper_;
  const Duration grace_;
  const Logger log_;
  const StuckWorker stuck_;
  InterruptibleSleeper waiting_;  // for the grace to pass
  std::atomic<bool> ran_out_{false};
  Mutex mutex_;
  Worker* worker_ ABSL_GUARDED_BY(mutex_);  // null once it is gone
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;
  TaskQueue timer_{"drain"};  // last: its thread uses everything above
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SETUP_TIMED_DRAIN_H_

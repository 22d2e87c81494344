#ifndef ATOLL_COMMON_PERIODIC_TASK_H_
#define ATOLL_COMMON_PERIODIC_TASK_H_

#include <functional>
#include <string>

#include "common/mutex.h"
#include "common/thread.h"

namespace atl {

/// Runs a function periodically on a separate thread: `period` after the start of the previous run, or
/// immediately if that run took longer. Missed runs are not repeated. The first run is one period after the
/// start. Thread-safe.
class PeriodicTask {
 public:
  PeriodicTask(std::string name, Duration period, std::function<void()> run);
  ~PeriodicTask();
  PeriodicTask(const PeriodicTask&) = delete;
  PeriodicTask& operator=(const PeriodicTask&) = delete;

  /// Runs the function as soon as possible. Several calls before the run count as one.
  void Wake();
  /// Waits for the run in progress and joins the thread. Idempotent. Do not call it from the function itself.
  void Stop();

 private:
  void Loop();

  const std::string name_;
  const Duration period_;
  const std::function<void()> run_;
  Mutex mutex_;
  CondVar wake_;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Thread thread_;  // declared last, because it uses everything above
};

}  // namespace atl

#endif  // ATOLL_COMMON_PERIODIC_TASK_H_

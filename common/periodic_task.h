#ifndef ATOLL_COMMON_PERIODIC_TASK_H_
#define ATOLL_COMMON_PERIODIC_TASK_H_

#include <functional>
#include <string>

#include "common/mutex.h"
#include "common/thread.h"

namespace atl {

/// Runs a function on a thread of its own, again and again: `period` after the previous run began, or at once
/// when it took longer (runs that were missed are not made up). The first run comes one period after the
/// start. Thread-safe.
class PeriodicTask {
 public:
  PeriodicTask(std::string name, Duration period, std::function<void()> run);
  ~PeriodicTask();
  PeriodicTask(const PeriodicTask&) = delete;
  PeriodicTask& operator=(const PeriodicTask&) = delete;

  /// Runs it as soon as possible, without waiting for the period; several calls before it runs count as one.
  void Wake();
  /// Waits for the run in progress and joins. Idempotent; not from the function itself.
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
  Thread thread_;  // last: it uses everything above
};

}  // namespace atl

#endif  // ATOLL_COMMON_PERIODIC_TASK_H_

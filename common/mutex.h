#ifndef ATOLL_COMMON_MUTEX_H_
#define ATOLL_COMMON_MUTEX_H_

#include <condition_variable>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "common/clock.h"

namespace atl {

/// std::mutex with annotations for clang's -Wthread-safety and ABSL_GUARDED_BY. Not absl::Mutex, because
/// ThreadSanitizer does not understand it if Abseil comes uninstrumented from the distribution. The program
/// chooses the implementation of this header at link time (common/thread.h).
class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION();
  void Unlock() ABSL_UNLOCK_FUNCTION();

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_->Lock(); }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

/// Condition variable for Mutex. The mutex must be held; wake-ups may be spurious: wait in a loop.
class CondVar {
 public:
  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  /// Returns false if `deadline`, on the clock SteadyNow, has passed.
  bool WaitUntil(Mutex* mutex, MonoTime deadline) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void NotifyOne();
  void NotifyAll();

 private:
  std::condition_variable condition_;
};

}  // namespace atl

#endif  // ATOLL_COMMON_MUTEX_H_

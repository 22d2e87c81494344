#ifndef ATOLL_TESTS_GUARD_TURNSTILE_H_
#define ATOLL_TESTS_GUARD_TURNSTILE_H_

#include <map>
#include <optional>
#include <vector>

#include "common/mutex.h"

namespace atl {

/// Lets one of several threads run at a time: the one that the scheduler names, until it yields. So a run of
/// several threads depends on the scheduler's choices only. The scheduler is a thread of its own, which runs
/// while nobody else does.
class Turnstile {
 public:
  /// Registers a thread of `owner` that is about to be started. Called by the thread whose turn it is, or by
  /// the scheduler, so that the set of threads changes in a defined order.
  int Add(const void* owner) {
    const MutexLock lock(&mutex_);
    const int id = next_++;
    owners_.emplace(id, owner);
    return id;
  }
  /// The first and the last call of a registered thread.
  void Enter(int id) {
    Current() = id;
    Await(id);
  }
  void Leave() {
    const MutexLock lock(&mutex_);
    owners_.erase(Current());
    turn_.reset();
    changed_.NotifyAll();
  }
  /// Gives the turn back and waits for the next one. The scheduler's own calls return at once.
  void Yield() {
    if (Current() == kNobody) return;
    {
      const MutexLock lock(&mutex_);
      turn_.reset();
      changed_.NotifyAll();
    }
    Await(Current());
  }

  /// For the scheduler: the registered threads, of one owner or (null) of all, in the order of their
  /// registration.
  std::vector<int> threads(const void* owner = nullptr) {
    const MutexLock lock(&mutex_);
    std::vector<int> ids;
    for (const auto& [id, of] : owners_) {
      if (owner == nullptr || of == owner) ids.push_back(id);
    }
    return ids;
  }
  /// For the scheduler: lets this thread, unless it has left, run until it yields or leaves.
  void Run(int id) {
    const MutexLock lock(&mutex_);
    if (!owners_.contains(id)) return;
    turn_ = id;
    changed_.NotifyAll();
    while (turn_.has_value()) changed_.Wait(&mutex_);
  }

 private:
  static constexpr int kNobody = 0;
  static int& Current() {
    thread_local int current = kNobody;
    return current;
  }
  void Await(int id) {
    const MutexLock lock(&mutex_);
    while (turn_ != id) changed_.Wait(&mutex_);
  }

  Mutex mutex_;
  CondVar changed_;
  int next_ ABSL_GUARDED_BY(mutex_) = kNobody + 1;
  std::map<int, const void*> owners_ ABSL_GUARDED_BY(mutex_);
  std::optional<int> turn_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_TESTS_GUARD_TURNSTILE_H_

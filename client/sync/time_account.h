#ifndef ATOLL_CLIENT_SYNC_TIME_ACCOUNT_H_
#define ATOLL_CLIENT_SYNC_TIME_ACCOUNT_H_

#include <set>

#include "common/clock.h"
#include "common/mutex.h"
#include "core/time_use.h"

namespace atl {

/// Where one thread's time goes: at every moment into exactly one use, so that the uses add up to the time
/// since the account was made. Enter and Move are the thread's own; spent() is for every thread.
class TimeAccount {
 public:
  /// `clock` outlives this object.
  TimeAccount(const Clock* clock, TimeUse first) : clock_(clock), use_(first), since_(clock->Now()) {}

  /// From now on it goes into `use`. Returns what it went into until now.
  TimeUse Enter(TimeUse use) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Of the time since the last Enter or Move, so much (at most all of it) went into `use` instead.
  void Move(TimeUse use, Duration time) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Of the time since the last Enter or Move.
  Duration open() const ABSL_LOCKS_EXCLUDED(mutex_);

  /// Up to now. Uses never shrink, so inner steps and pulls are counted when they end: only then is it known
  /// how much of them to Move.
  TimeSpent spent() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const Clock* const clock_;
  mutable Mutex mutex_;
  TimeSpent spent_ ABSL_GUARDED_BY(mutex_);
  TimeUse use_ ABSL_GUARDED_BY(mutex_);
  MonoTime since_ ABSL_GUARDED_BY(mutex_);
};

/// In its scope the thread's time goes into `use`; then into what it went before. `account` may be null:
/// nobody counts.
class Spending {
 public:
  Spending(TimeAccount* account, TimeUse use) : account_(account) {
    if (account_ != nullptr) before_ = account_->Enter(use);
  }
  ~Spending() {
    if (account_ != nullptr) account_->Enter(before_);
  }
  Spending(const Spending&) = delete;
  Spending& operator=(const Spending&) = delete;

  void Move(TimeUse use, Duration time) {
    if (account_ != nullptr) account_->Move(use, time);
  }
  Duration open() const { return account_ != nullptr ? account_->open() : Duration(0); }

 private:
  TimeAccount* const account_;
  TimeUse before_ = TimeUse::kOther;
};

/// The accounts of threads that come and go, together. Thread-safe.
class TimeAccounts {
 public:
  void Add(const TimeAccount* account) ABSL_LOCKS_EXCLUDED(mutex_);
  /// Its time up to now stays counted.
  void Remove(const TimeAccount* account) ABSL_LOCKS_EXCLUDED(mutex_);
  TimeSpent spent() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  std::set<const TimeAccount*> open_ ABSL_GUARDED_BY(mutex_);
  TimeSpent closed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_TIME_ACCOUNT_H_

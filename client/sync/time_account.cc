#include "client/sync/time_account.h"

#include <algorithm>
#include <utility>

namespace atl {
namespace {

/// Whether a part of it may be something else, which is known at its end only.
bool SplitsAtItsEnd(TimeUse use) { return use == TimeUse::kCompute || use == TimeUse::kPull; }

}  // namespace

TimeUse TimeAccount::Enter(TimeUse use) {
  const MonoTime now = clock_->Now();
  const MutexLock lock(&mutex_);
  spent_[use_] += ToSeconds(now - since_);
  since_ = now;
  return std::exchange(use_, use);
}

void TimeAccount::Move(TimeUse use, Duration time) {
  const MonoTime now = clock_->Now();
  const MutexLock lock(&mutex_);
  const Duration moved = std::clamp(time, Duration(0), now - since_);
  spent_[use] += ToSeconds(moved);
  since_ += moved;
}

Duration TimeAccount::open() const {
  const MonoTime now = clock_->Now();
  const MutexLock lock(&mutex_);
  return now - since_;
}

TimeSpent TimeAccount::spent() const {
  const MonoTime now = clock_->Now();
  const MutexLock lock(&mutex_);
  TimeSpent spent = spent_;
  if (!SplitsAtItsEnd(use_)) spent[use_] += std::max(0.0, ToSeconds(now - since_));
  return spent;
}

void TimeAccounts::Add(const TimeAccount* account) {
  const MutexLock lock(&mutex_);
  open_.insert(account);
}

void TimeAccounts::Remove(const TimeAccount* account) {
  const TimeSpent spent = account->spent();
  const MutexLock lock(&mutex_);
  if (open_.erase(account) > 0) closed_.Add(spent);
}

TimeSpent TimeAccounts::spent() const {
  const MutexLock lock(&mutex_);
  TimeSpent spent = closed_;
  for (const TimeAccount* account : open_) spent.Add(account->spent());
  return spent;
}

}  // namespace atl

#include "server/publish/published_versions.h"

#include <utility>

#include "core/delta.h"

namespace atl {

template <typename Predicate>
std::vector<PublishedVersions::Waiter> PublishedVersions::Take(Predicate matches) {
  std::vector<Waiter> taken;
  for (auto it = waiters_.begin(); it != waiters_.end();) {
    if (matches(it->second)) {
      taken.push_back(std::move(it->second));
      it = waiters_.erase(it);
    } else {
      ++it;
    }
  }
  return taken;
}

SnapshotPtr PublishedVersions::Head(FragmentId fragment) const {
  MutexLock lock(&mutex_);
  return heads_[fragment.value()].head;
}

DeltaPtr PublishedVersions::DeltaFrom(FragmentId fragment, Version from) const {
  MutexLock lock(&mutex_);
  for (const DeltaPtr& delta : heads_[fragment.value()].deltas) {
    if (delta->from == from) return delta;
  }
  return nullptr;
}

uint64_t PublishedVersions::Wait(FragmentId fragment, std::optional<Version> after, MonoTime now,
                                 MonoTime deadline, Done done, bool trains) {
  Outcome outcome = Outcome::kTimeout;
  SnapshotPtr snapshot;
  uint64_t id = 0;
  {
    MutexLock lock(&mutex_);
    id = next_id_++;
    const Entry& entry = heads_[fragment.value()];
    if (closed_) {
      outcome = Outcome::kClosed;
    } else if (Satisfies(entry.head, after) && !(held_ && trains)) {
      outcome = Outcome::kSnapshot;
      snapshot = entry.head;
    } else if (entry.finished) {
      outcome = Outcome::kFinished;
    } else if (now < deadline) {
      waiters_.emplace(id, Waiter{fragment, after, deadline, std::move(done), trains});
      return id;
    }
  }
  done(outcome, std::move(snapshot));
  return id;
}

void PublishedVersions::Cancel(uint64_t id) {
  Done done;
  {
    MutexLock lock(&mutex_);
    const auto it = waiters_.find(id);
    if (it == waiters_.end()) return;
    done = std::move(it->second.done);
    waiters_.erase(it);
  }
  done(Outcome::kCancelled, nullptr);
}

void PublishedVersions::Publish(SnapshotPtr snapshot) {
  std::vector<Waiter> answered;
  if (notified_) notified_(*snapshot);
  SnapshotPtr replaced;  // its memory, perhaps gigabytes, is given back outside the lock
  {
    MutexLock lock(&mutex_);
    Entry& entry = heads_[snapshot->fragment.value()];
    if (entry.head && entry.head->epoch != snapshot->epoch) entry.finished = false;  // restored
    // Without a difference to the version before (a restart, a restore) nobody can follow.
    if (snapshot->delta == nullptr) entry.deltas.clear();
    if (snapshot->delta != nullptr) entry.deltas.push_back(snapshot->delta);
    if (entry.deltas.size() > kDeltasKept) entry.deltas.pop_front();
    replaced = std::exchange(entry.head, snapshot);
    answered = Take([&](const Waiter& waiter) {
      return waiter.fragment == snapshot->fragment && Satisfies(snapshot, waiter.after) &&
             !(held_ && waiter.trains);
    });
  }
  for (Waiter& waiter : answered) waiter.done(Outcome::kSnapshot, snapshot);
}

void PublishedVersions::Hold() {
  MutexLock lock(&mutex_);
  held_ = true;
}

void PublishedVersions::Release() {
  std::vector<std::pair<Waiter, SnapshotPtr>> answered;
  {
    MutexLock lock(&mutex_);
    held_ = false;
    for (Waiter& waiter : Take(
             [&](const Waiter& each) { return Satisfies(heads_[each.fragment.value()].head, each.after); })) {
      SnapshotPtr head = heads_[waiter.fragment.value()].head;
      answered.emplace_back(std::move(waiter), std::move(head));
    }
  }
  for (auto& [waiter, snapshot] : answered) waiter.done(Outcome::kSnapshot, std::move(snapshot));
}

void PublishedVersions::Finish(FragmentId fragment) {
  std::vector<Waiter> answered;
  {
    MutexLock lock(&mutex_);
    heads_[fragment.value()].finished = true;
    answered = Take([&](const Waiter& waiter) { return waiter.fragment == fragment; });
  }
  for (Waiter& waiter : answered) waiter.done(Outcome::kFinished, nullptr);
}

void PublishedVersions::Reopen(FragmentId fragment) {
  MutexLock lock(&mutex_);
  heads_[fragment.value()].finished = false;
}

void PublishedVersions::Expire(MonoTime now) {
  std::vector<Waiter> answered;
  {
    MutexLock lock(&mutex_);
    answered = Take([&](const Waiter& waiter) { return waiter.deadline <= now; });
  }
  for (Waiter& waiter : answered) waiter.done(Outcome::kTimeout, nullptr);
}

void PublishedVersions::Close() {
  std::vector<Waiter> answered;
  {
    MutexLock lock(&mutex_);
    closed_ = true;
    answered = Take([](const Waiter&) { return true; });
  }
  for (Waiter& waiter : answered) waiter.done(Outcome::kClosed, nullptr);
}

size_t PublishedVersions::waiting() const {
  MutexLock lock(&mutex_);
  return waiters_.size();
}

}  // namespace atl

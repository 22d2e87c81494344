#ifndef ATOLL_SERVER_PUBLISH_PUBLISHED_VERSIONS_H_
#define ATOLL_SERVER_PUBLISH_PUBLISHED_VERSIONS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/clock.h"
#include "common/ids.h"
#include "common/mutex.h"
#include "server/publish/snapshot.h"

namespace atl {

/// The published versions, and who waits for the next one. Thread-safe; callbacks run on the thread that
/// caused them (publisher, ticker, canceller, or the waiter itself), never under the lock.
class PublishedVersions {
 public:
  enum class Outcome : uint8_t { kSnapshot = 1, kTimeout, kFinished, kCancelled, kClosed };
  /// The snapshot is set with kSnapshot only.
  using Done = std::function<void(Outcome, SnapshotPtr)>;

  explicit PublishedVersions(uint32_t fragments) : heads_(fragments) {}

  /// Null when nothing is published yet.
  SnapshotPtr Head(FragmentId fragment) const;
  /// What leads from this version of the head's epoch to the next one; null when it is not kept (any more):
  /// the last few are.
  DeltaPtr DeltaFrom(FragmentId fragment, Version from) const;

  /// Calls `done` exactly once: with a snapshot above `after` (absent: any), perhaps before returning, or
  /// with a head below `after`, whose caller has seen versions that are lost
  /// (docs/guides/backup-and-restore.md); kTimeout when Expire(now >= deadline) finds it still waiting;
  /// kFinished when there will be none. Returns an id for Cancel. The fragment exists. `trains`: gets nothing
  /// while PublishedVersions is held.
  uint64_t Wait(FragmentId fragment, std::optional<Version> after, MonoTime now, MonoTime deadline, Done done,
                bool trains = false);
  /// While the run is paused: who would train on a version waits, as if there was none.
  void Hold();
  /// Answers those who waited only for this.
  void Release();
  /// Answers kCancelled, if it still waits.
  void Cancel(uint64_t id);

  /// Is told of every version before anybody gets it. Once, before the first Publish.
  void OnFirst(std::function<void(const Snapshot&)> notified) { notified_ = std::move(notified); }
  /// The next version of its fragment; answers those who waited for it. A version of another epoch gives a
  /// finished fragment another life.
  void Publish(SnapshotPtr snapshot);
  /// No version above the head will come: waiting pulls get kFinished, now and from now on.
  void Finish(FragmentId fragment);
  /// There will be further versions after all.
  void Reopen(FragmentId fragment);
  /// Answers those whose time is out.
  void Expire(MonoTime now);
  /// Answers everybody kClosed, now and from now on.
  void Close();

  size_t waiting() const;

 private:
  std::function<void(const Snapshot&)> notified_;  // constant after TellFirst
  struct Waiter {
    FragmentId fragment;
    std::optional<Version> after;
    MonoTime deadline;
    Done done;
    bool trains = false;
  };
  struct Entry {
    SnapshotPtr head;
    std::deque<DeltaPtr> deltas;  // ascending, without gaps, the last one leads to the head
    bool finished = false;
  };
  static bool Satisfies(const SnapshotPtr& head, std::optional<Version> after) {
    return head != nullptr && head->version != after;
  }
  template <typename Predicate>
  std::vector<Waiter> Take(Predicate matches) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::vector<Entry> heads_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace atl

#endif  // ATOLL_SERVER_PUBLISH_PUBLISHED_VERSIONS_H_

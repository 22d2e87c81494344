#ifndef ATOLL_TESTS_INTEGRATION_CRASH_PROMISES_H_
#define ATOLL_TESTS_INTEGRATION_CRASH_PROMISES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "common/ids.h"
#include "common/mutex.h"
#include "core/contribution.h"

namespace atl {

/// What the coordinator said to anybody, and may therefore never take back. Thread-safe.
class Promises {
 public:
  struct Acknowledged {
    Epoch epoch;
    WorkerName worker;
    Version base;
    auto operator<=>(const Acknowledged&) const = default;
  };
  struct Published {
    Epoch epoch;
    Version version;
    auto operator<=>(const Published&) const = default;
  };

  void Accepted(Epoch epoch, const WorkerName& worker, Version base) {
    MutexLock lock(&mutex_);
    accepted_.insert({epoch, worker, base});
  }
  /// The bits of a version as somebody pulled them. False when somebody else got other bits.
  bool Pulled(Epoch epoch, Version version, ContentHash hash) {
    MutexLock lock(&mutex_);
    Head(version);
    return published_.try_emplace({epoch, version}, hash).first->second == hash;
  }
  void HeadIs(Version version) {
    MutexLock lock(&mutex_);
    Head(version);
  }

  std::set<Acknowledged> accepted() const {
    MutexLock lock(&mutex_);
    return accepted_;
  }
  std::map<Published, ContentHash> published() const {
    MutexLock lock(&mutex_);
    return published_;
  }
  Version head() const {
    MutexLock lock(&mutex_);
    return head_;
  }

 private:
  void Head(Version version) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (version > head_) head_ = version;
  }

  mutable Mutex mutex_;
  std::set<Acknowledged> accepted_ ABSL_GUARDED_BY(mutex_);
  std::map<Published, ContentHash> published_ ABSL_GUARDED_BY(mutex_);
  Version head_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_TESTS_INTEGRATION_CRASH_PROMISES_H_

#ifndef ATOLL_SERVER_EVENTS_EVENT_LOG_H_
#define ATOLL_SERVER_EVENTS_EVENT_LOG_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>

#include "common/clock.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/task_queue.h"
#include "common/thread.h"
#include "server/events/observer.h"
#include "server/views.h"
#include "storage/run_store.h"

namespace atl {

/// Numbers events, keeps them in the store, and tells subscribers. One thread of its own does both, in order,
/// so that a subscriber which reads the past from the store and then follows misses nothing and sees nothing
/// twice. Thread-safe.
class EventLog {
 public:
  /// False ends the subscription. See Coordinator::Subscribe.
  using Sink = std::function<bool(const EventView&)>;

  /// `last_sequence`: of the newest event in the store. Everything outlives the log.
  EventLog(RunStore* store, const Clock* clock, Logger log, CoordinatorObserver* observer,
           uint64_t last_sequence);
  ~EventLog();

  /// Gives it a number and the time. Does not wait for the disk: an event may be lost with power.
  void Append(EventView event);
  uint64_t last_sequence() const;

  uint64_t Subscribe(uint64_t after_sequence, Sink sink);
  /// Once it returns, the sink is not called any more (unless called from the sink itself).
  void Unsubscribe(uint64_t id);

  /// Keeps and tells what was appended, then ends every subscription. Idempotent.
  void Stop();
  /// Returns once everything appended so far was kept and told.
  void Drain() { queue_.Drain(); }

 private:
  struct Subscriber {
    Sink sink;
    uint64_t after = 0;      // the last one it was told
    bool following = false;  // has been told the past
  };
  void Deliver(const EventView& event);
  void Keep(const EventView& event);
  bool Notify(uint64_t id, const EventView& event);
  void CatchUp(uint64_t id);

  RunStore* const store_;
  const Clock* const clock_;
  const Logger log_;
  CoordinatorObserver* const observer_;

  mutable Mutex mutex_;
  CondVar notified_;
  uint64_t last_sequence_ ABSL_GUARDED_BY(mutex_);
  uint64_t next_subscriber_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uint64_t, std::shared_ptr<Subscriber>> subscribers_ ABSL_GUARDED_BY(mutex_);
  uint64_t notifying_ ABSL_GUARDED_BY(mutex_) = 0;  // the subscriber whose sink is running
  uint64_t notifier_ ABSL_GUARDED_BY(mutex_) = 0;   // CurrentThreadId

  // Of the queue's thread alone.
  std::deque<EventView> unsaved_;
  bool complained_ = false;

  TaskQueue queue_;  // last: its thread uses everything above
};

}  // namespace atl

#endif  // ATOLL_SERVER_EVENTS_EVENT_LOG_H_

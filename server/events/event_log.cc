#include "server/events/event_log.h"

#include <utility>
#include <vector>

#include "common/trace_context.h"
#include "server/events/event_json.h"

namespace atl {
namespace {

// Events that wait for a full disk; beyond it the oldest are forgotten.
constexpr size_t kMaxUnsaved = 1000;
// Events read from the store at once while a subscriber catches up.
constexpr size_t kReadBatch = 256;

}  // namespace

EventLog::EventLog(RunStore* store, const Clock* clock, Logger log, CoordinatorObserver* observer,
                   uint64_t last_sequence)
    : store_(store),
      clock_(clock),
      log_(std::move(log)),
      observer_(observer),
      last_sequence_(last_sequence),
      queue_("events") {}

EventLog::~EventLog() { Stop(); }

void EventLog::Append(EventView event) {
  event.unix_ns = clock_->WallNow().time_since_epoch().count();
  event.trace_id = CurrentTraceId();
  observer_->OnEvent(event.kind);
  MutexLock lock(&mutex_);
  event.sequence = ++last_sequence_;
  // Posted under the lock, so that events are kept in the order of their numbers. A queue that has stopped
  // drops it: the coordinator is going down.
  (void)queue_.Post([this, event = std::move(event)] { Deliver(event); });
}

uint64_t EventLog::last_sequence() const {
  MutexLock lock(&mutex_);
  return last_sequence_;
}

void EventLog::Keep(const EventView& event) {
  unsaved_.push_back(event);
  if (unsaved_.size() > kMaxUnsaved) unsaved_.pop_front();
  while (!unsaved_.empty()) {
    const EventView& oldest = unsaved_.front();
    const absl::Status kept =
        store_->AppendEvent(EventEntry{.sequence = oldest.sequence, .bytes = EncodeEvent(oldest)});
    if (!kept.ok()) {
      if (!complained_)
        log_.Warning("events are not kept on disk; trying again with the next", {{"error", kept}});
      complained_ = true;
      return;
    }
    complained_ = false;
    unsaved_.pop_front();
  }
}

void EventLog::Deliver(const EventView& event) {
  Keep(event);
  std::vector<uint64_t> ids;
  {
    MutexLock lock(&mutex_);
    for (const auto& [id, subscriber] : subscribers_) {
      if (subscriber->following) ids.push_back(id);
    }
  }
  for (const uint64_t id : ids) (void)Notify(id, event);
}

bool EventLog::Notify(uint64_t id, const EventView& event) {
  std::shared_ptr<Subscriber> subscriber;
  {
    MutexLock lock(&mutex_);
    const auto it = subscribers_.find(id);
    if (it == subscribers_.end()) return false;
    subscriber = it->second;
    if (event.sequence <= subscriber->after) return true;
    subscriber->after = event.sequence;
    notifying_ = id;
    notifier_ = CurrentThreadId();
  }
  const bool more = subscriber->sink(event);
  MutexLock lock(&mutex_);
  notifying_ = 0;
  if (!more) subscribers_.erase(id);
  notified_.NotifyAll();
  return more;
}

void EventLog::CatchUp(uint64_t id) {
  while (true) {
    uint64_t after = 0;
    {
      MutexLock lock(&mutex_);
      const auto it = subscribers_.find(id);
      if (it == subscribers_.end()) return;
      after = it->second->after;
    }
    const auto entries = store_->ReadEvents(after, kReadBatch);
    if (!entries.ok()) {
      log_.Warning("past events cannot be read; the subscriber gets only new ones",
                   {{"error", entries.status()}});
      break;
    }
    if (entries->empty()) break;
    for (const EventEntry& entry : *entries) {
      const auto event = DecodeEvent(entry.bytes);
      if (!event.ok()) {
        log_.Warning("skipping an event", {{"sequence", entry.sequence}, {"error", event.status()}});
        // The number alone moves the subscriber on, else it would be read again for ever.
        MutexLock lock(&mutex_);
        if (const auto it = subscribers_.find(id); it != subscribers_.end())
          it->second->after = entry.sequence;
        continue;
      }
      if (!Notify(id, *event)) return;
    }
  }
  for (const EventView& event : unsaved_) {
    if (!Notify(id, event)) return;
  }
  // On the thread that delivers, so that nothing can have come in between.
  MutexLock lock(&mutex_);
  if (const auto it = subscribers_.find(id); it != subscribers_.end()) it->second->following = true;
}

uint64_t EventLog::Subscribe(uint64_t after_sequence, Sink sink) {
  MutexLock lock(&mutex_);
  const uint64_t id = next_subscriber_++;
  subscribers_.emplace(id, std::make_shared<Subscriber>(Subscriber{std::move(sink), after_sequence}));
  if (!queue_.Post([this, id] { CatchUp(id); })) subscribers_.erase(id);
  return id;
}

void EventLog::Unsubscribe(uint64_t id) {
  std::shared_ptr<Subscriber> ended;  // the sink is destroyed outside the lock
  MutexLock lock(&mutex_);
  if (const auto it = subscribers_.find(id); it != subscribers_.end()) {
    ended = std::move(it->second);
    subscribers_.erase(it);
  }
  while (notifying_ == id && notifier_ != CurrentThreadId()) notified_.Wait(&mutex_);
}

void EventLog::Stop() {
  queue_.Stop();
  std::map<uint64_t, std::shared_ptr<Subscriber>> ended;
  MutexLock lock(&mutex_);
  ended.swap(subscribers_);
}

}  // namespace atl

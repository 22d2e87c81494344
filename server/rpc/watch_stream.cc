#include "server/rpc/watch_stream.h"

#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "server/rpc/admission.h"
#include "server/rpc/encode.h"
#include "server/rpc/write_stream.h"

namespace atl {
namespace {

class WatchStream final : public WriteStream<v1::RunEvent> {
 public:
  WatchStream(const CallContext& call, grpc::CallbackServerContext* context)
      : WriteStream<v1::RunEvent>(call, context) {}

  void Start(const std::shared_ptr<WatchStream>& self, uint64_t after_sequence);
  void OnShutdown() override { End(GoingAway()); }

 private:
  void Subscribe(const std::shared_ptr<WatchStream>& self, uint64_t after_sequence);
  void Unsubscribe();
  bool OnEvent(const EventView& event);
  void OnWritten() override { SendNext(); }
  void OnGone() override;
  void SendNext();

  bool has_slot_ = false;  // set before anything else, given back when gRPC is done with the call
  Mutex queue_mutex_;
  std::deque<EventView> queue_ ABSL_GUARDED_BY(queue_mutex_);
  bool sending_ ABSL_GUARDED_BY(queue_mutex_) = false;
  bool overflowed_ ABSL_GUARDED_BY(queue_mutex_) = false;
  bool gone_ ABSL_GUARDED_BY(queue_mutex_) = false;
  std::optional<uint64_t> subscription_ ABSL_GUARDED_BY(queue_mutex_);
};

void WatchStream::Start(const std::shared_ptr<WatchStream>& self, uint64_t after_sequence) {
  KeepAlive(self);
  if (const auto who = IdentifyCaller(call_, *context_); !who.ok()) return End(who.status());
  has_slot_ = call_.watchers == nullptr || call_.watchers->Take();
  if (!has_slot_) return End(TooManyStreams());
  // Subscribing reads the events of the past from disk.
  const bool posted = call_.calls->Post([this, self, after_sequence] { Subscribe(self, after_sequence); });
  if (!posted) End(Overloaded());
}

void WatchStream::Subscribe(const std::shared_ptr<WatchStream>& self, uint64_t after_sequence) {
  if (ended()) return;
  const uint64_t id = call_.coordinator->Subscribe(
      after_sequence, [self](const EventView& event) { return self->OnEvent(event); });
  bool gone = false;
  {
    MutexLock lock(&queue_mutex_);
    subscription_ = id;
    gone = gone_;
  }
  if (gone) call_.coordinator->Unsubscribe(id);
}

void WatchStream::OnGone() {
  if (has_slot_ && call_.watchers != nullptr) call_.watchers->Leave();
  std::optional<uint64_t> id;
  {
    MutexLock lock(&queue_mutex_);
    gone_ = true;
    queue_.clear();
    id = subscription_;
  }
  if (!id) return;
  // Not on gRPC's thread: it may wait for an event that is just being delivered.
  Coordinator* const coordinator = call_.coordinator;
  if (!call_.calls->PostAdmitted([coordinator, id] { coordinator->Unsubscribe(*id); })) {
    coordinator->Unsubscribe(*id);  // the pool has stopped: the server is going
  }
}

bool WatchStream::OnEvent(const EventView& event) {
  if (ended()) return false;
  {
    MutexLock lock(&queue_mutex_);
    if (overflowed_ || queue_.size() >= call_.max_watch_backlog) {
      overflowed_ = true;  // what is queued is still sent, so that the watcher gets further each time
      return false;
    }
    queue_.push_back(event);
    if (sending_) return true;
    sending_ = true;
  }
  SendNext();
  return true;
}

void WatchStream::SendNext() {
  std::optional<EventView> next;
  bool overflowed = false;
  {
    MutexLock lock(&queue_mutex_);
    overflowed = overflowed_;
    if (queue_.empty()) {
      sending_ = false;
    } else {
      next = std::move(queue_.front());
      queue_.pop_front();
    }
  }
  if (next) {
    message_.Clear();
    EncodeEvent(*next, &message_);
    Write();
  } else if (overflowed) {
    End(absl::AbortedError(
        "too many events at once for this watcher; watch again after the last one it got"));
  }
}

}  // namespace

grpc::ServerWriteReactor<v1::RunEvent>* StartWatchStream(const CallContext& call,
                                                         grpc::CallbackServerContext* context,
                                                         const v1::WatchRunRequest* request) {
  const auto stream = std::make_shared<WatchStream>(call, context);
  stream->Start(stream, request->after_sequence());
  return stream.get();
}

}  // namespace atl

#ifndef ATOLL_SERVER_RPC_PUMPED_STREAM_H_
#define ATOLL_SERVER_RPC_PUMPED_STREAM_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "common/mutex.h"
#include "server/rpc/write_stream.h"

namespace atl {

/// A server stream whose messages are made one after another by a function that may block, on a thread of a
/// pool: it waits for each to leave before it makes the next, so that a slow client holds one message and a
/// thread, and no more.
template <typename Message>
class PumpedStream final : public WriteStream<Message> {
 public:
  /// Sends a message; false: the client is gone or the server is going, make no more.
  using Send = std::function<bool(const Message&)>;
  using Produce = std::function<absl::Status(const Send&)>;

  /// Answers the call, when it was `admitted`, with what `produce` sends, and ends it with its status.
  static grpc::ServerWriteReactor<Message>* Start(const CallContext& call, IoPool* pool,
                                                  grpc::CallbackServerContext* context,
                                                  const absl::Status& admitted, Produce produce) {
    const std::shared_ptr<PumpedStream> self(new PumpedStream(call, context));
    self->KeepAlive(self);
    if (!admitted.ok()) {
      self->End(admitted);
      return self.get();
    }
    const bool posted = pool->Post([self, produce = std::move(produce)] {
      const ScopedTrace scope(self->trace_);
      self->End(produce([&self](const Message& message) { return self->SendOne(message); }));
    });
    if (!posted) self->End(Overloaded());
    return self.get();
  }

  void OnShutdown() override { this->End(GoingAway()); }

 private:
  PumpedStream(const CallContext& call, grpc::CallbackServerContext* context)
      : WriteStream<Message>(call, context) {}

  bool SendOne(const Message& message) {
    {
      MutexLock lock(&pump_mutex_);
      while (busy_ && !gone_) moved_.Wait(&pump_mutex_);
      if (gone_) return false;
      busy_ = true;
    }
    if (this->ended()) return false;
    this->message_ = message;
    this->Write();
    return true;
  }
  void OnWritten() override {
    MutexLock lock(&pump_mutex_);
    busy_ = false;
    moved_.NotifyAll();
  }
  void OnGone() override {
    MutexLock lock(&pump_mutex_);
    gone_ = true;
    moved_.NotifyAll();
  }

  Mutex pump_mutex_;
  CondVar moved_;
  bool busy_ ABSL_GUARDED_BY(pump_mutex_) = false;
  bool gone_ ABSL_GUARDED_BY(pump_mutex_) = false;
};

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_PUMPED_STREAM_H_

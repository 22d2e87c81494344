#ifndef ATOLL_SERVER_RPC_UPLOAD_REACTOR_H_
#define ATOLL_SERVER_RPC_UPLOAD_REACTOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/mutex.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "protos/wire/trace.h"
#include "server/rpc/call_context.h"
#include "server/rpc/grpc_status.h"

namespace atl {

/// A client stream: messages go, one at a time and in order, to a sink that may block, on the pool for
/// uploads; one read is outstanding while the sink is idle, so that HTTP/2's flow control holds back a client
/// that is faster than the disk. The end, which looks at the whole payload and waits for the disk, is on a
/// pool of its own, so that the chunks of others go on meanwhile. `Sink` has
///   absl::Status OnMessage(const Message&)   each message
///   bool complete()                          no more need to come
///   static bool MayBeginWith(const Message&) false: its size alone tells that it is no first message, and
///                                            it does not wait for a thread
///   absl::Status OnEnd(Reply*)               the client sent everything
/// and is destroyed before the client gets its answer, so that it may start again at once.
///
/// Ends at once when its caller was not `admitted`, with the sink's first error, with DEADLINE_EXCEEDED when
/// no message came for the stall limit, with SHUTTING_DOWN when the server goes, and when the client cancels;
/// a stream that moves is never failed by the wall clock.
template <typename Message, typename Reply, typename Sink>
class UploadReactor final : public grpc::ServerReadReactor<Message>, public LiveStream {
 public:
  static grpc::ServerReadReactor<Message>* Start(const CallContext& call,
                                                 grpc::CallbackServerContext* context,
                                                 const absl::Status& admitted, Reply* reply,
                                                 std::unique_ptr<Sink> sink) {
    std::shared_ptr<UploadReactor> self(new UploadReactor(call, context, reply, std::move(sink)));
    self->self_ = self;
    if (!admitted.ok()) {
      self->End(admitted);
    } else if (!call.streams->Add(self)) {
      self->End(TooManyStreams());
    } else {
      self->Read();
    }
    return self.get();
  }

  void OnReadDone(bool ok) override {
    const auto held = ok ? std::make_shared<HeldMessage>(signs_) : nullptr;
    const bool first = !admitted_;
    admitted_ = true;
    {
      MutexLock lock(&mutex_);
      if (state_ == State::kFinished) return;
      state_ = State::kWorking;
    }
    if (ok && first && !Sink::MayBeginWith(message_)) {
      return End(absl::InvalidArgumentError("header: the first message carries the header, and only that"));
    }
    auto work = [this, ok, held] { Work(ok); };
    const bool posted = first ? call_.uploads->Post(work) : call_.uploads->PostAdmitted(work);
    if (!posted) End(first ? Overloaded() : GoingAway());
  }

  /// Nothing to do: the outstanding read fails, or the sink's work ends and finds the call cancelled.
  void OnCancel() override {}

  void OnDone() override { const std::shared_ptr<UploadReactor> last = std::move(self_); }

  void CheckProgress(MonoTime now) override {
    {
      MutexLock lock(&mutex_);
      if (state_ != State::kReading || now - reading_since_ <= call_.stall_limit) return;
      state_ = State::kFinished;
    }
    Finish(absl::DeadlineExceededError(
        absl::StrFormat("no message came for %.0f s; the stream was ended, send the rest in a new one",
                        ToSeconds(call_.stall_limit))));
  }

  /// A message that is being worked on gets the coordinator's answer, which accepts or refuses it; who still
  /// sends is told at once: gRPC would cancel the stream, which says nothing, and that only after the grace.
  void OnShutdown() override {
    {
      MutexLock lock(&mutex_);
      going_ = true;
      if (state_ != State::kReading) return;  // Read, or the work in progress, sees it
      state_ = State::kFinished;
    }
    Finish(GoingAway());
  }

 private:
  // kStarting: a read is about to be started, when the stream must not be finished by anybody else.
  enum class State : uint8_t { kStarting, kReading, kWorking, kFinished };

  UploadReactor(const CallContext& call, grpc::CallbackServerContext* context, Reply* reply,
                std::unique_ptr<Sink> sink)
      : call_(call),
        context_(context),
        trace_(ReceivedTrace(context->client_metadata())),
        reply_(reply),
        sink_(std::move(sink)),
        signs_(Moved(call, context->peer())) {}

  void Read() {
    // The call may be over by the time StartRead returns.
    const std::shared_ptr<UploadReactor> keep = self_;
    uint64_t read = 0;
    {
      MutexLock lock(&mutex_);
      state_ = State::kStarting;
      read = ++reads_;
      reading_since_ = call_.clock->Now();
    }
    this->StartRead(&message_);
    {
      MutexLock lock(&mutex_);
      // The message may have come, and the next read begun, before we are here.
      if (state_ != State::kStarting || read != reads_) return;
      state_ = going_ ? State::kFinished : State::kReading;
      if (!going_) return;
    }
    Finish(GoingAway());
  }

  void Work(bool ok) {
    const ScopedTrace scope(trace_);
    if (!ok) {
      if (context_->IsCancelled()) return End(absl::CancelledError("the client went away"));
      return Close();
    }
    const absl::Status status = sink_->OnMessage(message_);
    if (!status.ok()) {
      End(status);
    } else if (sink_->complete()) {
      Close();
    } else {
      Read();
    }
  }

  void Close() {
    const auto end = [this] {
      const ScopedTrace scope(trace_);
      End(sink_->OnEnd(reply_));
    };
    if (!call_.syncs->PostAdmitted(end)) End(GoingAway());
  }

  /// From kWorking only, in which nobody else finishes; or before anybody knows of it.
  void End(const absl::Status& status) {
    {
      MutexLock lock(&mutex_);
      state_ = State::kFinished;
    }
    Finish(status);
  }

  void Finish(const absl::Status& status) {
    sink_.reset();
    grpc::ServerReadReactor<Message>::Finish(
        ToGrpc(CountRejection(call_, status, [this] { return std::string(context_->peer()); })));
  }

  const CallContext call_;
  grpc::CallbackServerContext* const context_;
  const TraceContext trace_;
  Reply* const reply_;
  std::unique_ptr<Sink> sink_;  // used by the worker thread, or by the one that finishes
  const ConnectionProgress::Signs signs_;
  Message message_;
  bool admitted_ = false;                // OnReadDone only
  std::shared_ptr<UploadReactor> self_;  // until gRPC is done with it

  Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kStarting;
  uint64_t reads_ ABSL_GUARDED_BY(mutex_) = 0;
  bool going_ ABSL_GUARDED_BY(mutex_) = false;  // the server is
  MonoTime reading_since_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_UPLOAD_REACTOR_H_

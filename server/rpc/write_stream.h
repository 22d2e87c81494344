#ifndef ATOLL_SERVER_RPC_WRITE_STREAM_H_
#define ATOLL_SERVER_RPC_WRITE_STREAM_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/mutex.h"
#include "grpc/grpc.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "protos/wire/trace.h"
#include "server/rpc/call_context.h"
#include "server/rpc/grpc_status.h"

namespace atl {

/// A server stream, one message at a time. Finishing waits for the write in progress and for holds, because
/// gRPC must not be given anything for a call that it may already have forgotten. A client that does not read
/// for the stall limit is cut off at once, with its status.
template <typename Message>
class WriteStream : public grpc::ServerWriteReactor<Message>, public LiveStream {
 public:
  void OnWriteDone(bool ok) final {
    {
      MutexLock lock(&mutex_);
      writing_ = false;
      if (!ok && !outcome_) outcome_ = absl::CancelledError("the client went away");
    }
    if (!MaybeFinish()) OnWritten();
  }

  void OnDone() final {
    OnGone();
    const std::shared_ptr<LiveStream> last = std::move(self_);
  }

  void OnCancel() override { End(absl::CancelledError("the client went away")); }

  void CheckProgress(MonoTime now) override {
    absl::Status outcome;
    {
      MutexLock lock(&mutex_);
      if (outcome_ || !writing_) return;
      outcome = WhyNotToGoOn();
      if (outcome.ok() && now - writing_since_ > call_.stall_limit) {
        outcome = absl::DeadlineExceededError(absl::StrFormat(
            "the client did not read for %.1f s; call again", ToSeconds(now - writing_since_)));
      }
      if (outcome.ok()) return;
      outcome_ = outcome;
      ++holds_;
    }
    CutOff(outcome);
    Release();
  }

  void OnShutdown() override {}

 protected:
  WriteStream(const CallContext& call, grpc::CallbackServerContext* context)
      : call_(call), trace_(ReceivedTrace(context->client_metadata())), context_(context) {}

  /// Once, before anything else: `self` owns this until gRPC is done with it.
  void KeepAlive(std::shared_ptr<LiveStream> self) {
    Moved(call_, context_->peer());
    const bool admitted = call_.streams->Add(self);
    self_ = std::move(self);
    if (!admitted) End(TooManyStreams());
  }

  /// Until Release the stream is not finished, however it ends: somebody still works on it.
  void Hold() {
    MutexLock lock(&mutex_);
    ++holds_;
  }
  void Release() {
    {
      MutexLock lock(&mutex_);
      --holds_;
    }
    MaybeFinish();
  }

  /// Sends message_. Only while no write is in progress; does nothing once the stream has ended.
  void Write() {
    {
      MutexLock lock(&mutex_);
      if (outcome_) return;
      writing_ = true;
      writing_since_ = call_.clock->Now();
    }
    this->StartWrite(&message_);
  }

  /// Ends the stream, after the write in progress; the first outcome counts. From any thread.
  void End(const absl::Status& outcome) {
    {
      MutexLock lock(&mutex_);
      if (!outcome_) outcome_ = outcome;
    }
    MaybeFinish();
  }

  bool ended() const {
    MutexLock lock(&mutex_);
    return outcome_.has_value();
  }

  /// message_ has left; may Write or End. Not called once the stream has ended.
  virtual void OnWritten() = 0;
  /// Why the stream is not worth going on with, if so. Called under a lock: must not call back.
  virtual absl::Status WhyNotToGoOn() const { return absl::OkStatus(); }
  /// gRPC is done with the call.
  virtual void OnGone() {}

  const CallContext call_;
  const TraceContext trace_;  // of the call
  grpc::CallbackServerContext* const context_;
  Message message_;

 private:
  /// Ends the call without waiting for what the client does not take. Finish would queue the status behind
  /// the data, and TryCancel would tell the client CANCELLED, which means that nobody wants the answer any
  /// more.
  void CutOff(const absl::Status& outcome) {
    const grpc::Status status = ToGrpc(outcome);
    grpc_call_cancel_with_status(context_->c_call(), static_cast<grpc_status_code>(status.error_code()),
                                 status.error_message().c_str(), nullptr);
  }

  /// True when the stream has ended, on either side.
  bool MaybeFinish() {
    absl::Status outcome;
    {
      MutexLock lock(&mutex_);
      if (!outcome_) return false;
      if (finished_ || writing_ || holds_ > 0) return true;
      finished_ = true;
      outcome = *outcome_;
    }
    this->Finish(ToGrpc(CountRejection(call_, outcome, [this] { return std::string(context_->peer()); })));
    return true;
  }

  std::shared_ptr<LiveStream> self_;

  mutable Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  int holds_ ABSL_GUARDED_BY(mutex_) = 0;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  MonoTime writing_since_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> outcome_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_SERVER_RPC_WRITE_STREAM_H_

#ifndef ATOLL_CLIENT_RPC_CALL_SET_H_
#define ATOLL_CLIENT_RPC_CALL_SET_H_

#include <set>

#include "common/mutex.h"
#include "grpcpp/client_context.h"

namespace atl {

/// The calls of one kind that are in progress, so that they can be ended. Thread-safe.
class CallSet {
 public:
  /// Ends all of them, and from now on each that begins.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(&mutex_);
    cancelled_ = true;
    for (grpc::ClientContext* context : contexts_) context->TryCancel();
  }
  bool cancelled() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(&mutex_);
    return cancelled_;
  }
  /// Ends those that have no answer yet.
  void EndWaiting() ABSL_LOCKS_EXCLUDED(mutex_) {
    const MutexLock lock(&mutex_);
    for (grpc::ClientContext* context : waiting_) {
      ended_.insert(context);
      context->TryCancel();
    }
  }

  /// Makes a call known to the set for as long as it lives.
  class Registration {
   public:
    Registration(CallSet* calls, grpc::ClientContext* context) : calls_(calls), context_(context) {
      const MutexLock lock(&calls_->mutex_);
      calls_->contexts_.insert(context_);
      calls_->waiting_.insert(context_);
      if (calls_->cancelled_) context_->TryCancel();
    }
    ~Registration() {
      const MutexLock lock(&calls_->mutex_);
      calls_->contexts_.erase(context_);
      calls_->waiting_.erase(context_);
      calls_->ended_.erase(context_);
    }
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

    /// The call waits no longer: its answer has begun.
    void Answered() const {
      const MutexLock lock(&calls_->mutex_);
      calls_->waiting_.erase(context_);
    }
    bool cancelled() const {
      const MutexLock lock(&calls_->mutex_);
      return calls_->cancelled_ || calls_->ended_.contains(context_);
    }

   private:
    CallSet* const calls_;
    grpc::ClientContext* const context_;
  };

 private:
  mutable Mutex mutex_;
  std::set<grpc::ClientContext*> contexts_ ABSL_GUARDED_BY(mutex_);
  std::set<grpc::ClientContext*> waiting_ ABSL_GUARDED_BY(mutex_);  // of them, those that have no answer yet
  std::set<grpc::ClientContext*> ended_ ABSL_GUARDED_BY(mutex_);    // and those that were ended for this
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_RPC_CALL_SET_H_

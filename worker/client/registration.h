#ifndef ATOLL_WORKER_CLIENT_REGISTRATION_H_
#define ATOLL_WORKER_CLIENT_REGISTRATION_H_

#include "worker/client/grpc_connection.h"

namespace atl {

/// Makes a call known to CancelPulls, EndPulls or CancelPushes for as long as it lives.
class GrpcConnection::Registration {
 public:
  Registration(GrpcConnection* connection, Calls GrpcConnection::*calls, grpc::ClientContext* context)
      : connection_(connection), calls_(calls), context_(context) {
    const MutexLock lock(&connection_->mutex_);
    Calls& known = connection_->*calls_;
    known.contexts.insert(context_);
    known.waiting.insert(context_);
    if (known.cancelled) context_->TryCancel();
  }
  ~Registration() {
    const MutexLock lock(&connection_->mutex_);
    Calls& known = connection_->*calls_;
    known.contexts.erase(context_);
    known.waiting.erase(context_);
    known.ended.erase(context_);
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  /// The call waits no longer: its answer has begun.
  void Answered() const {
    const MutexLock lock(&connection_->mutex_);
    (connection_->*calls_).waiting.erase(context_);
  }
  bool cancelled() const {
    const MutexLock lock(&connection_->mutex_);
    const Calls& known = connection_->*calls_;
    return known.cancelled || known.ended.contains(context_);
  }

 private:
  GrpcConnection* const connection_;
  Calls GrpcConnection::*const calls_;
  grpc::ClientContext* const context_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_CLIENT_REGISTRATION_H_

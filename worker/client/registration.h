#ifndef ATOLL_WORKER_CLIENT_REGISTRATION_H_
#define ATOLL_WORKER_CLIENT_REGISTRATION_H_

#include "worker/client/grpc_connection.h"

namespace atoll {

/// Makes a call known to CancelPulls or CancelPushes for as long as it lives.
class GrpcConnection::Registration {
 public:
  Registration(GrpcConnection* connection, Calls GrpcConnection::*calls, grpc::ClientContext* context)
      : connection_(connection), calls_(calls), context_(context) {
    const MutexLock lock(&connection_->mutex_);
    (connection_->*calls_).contexts.insert(context_);
    if ((connection_->*calls_).cancelled) context_->TryCancel();
  }
  ~Registration() {
    const MutexLock lock(&connection_->mutex_);
    (connection_->*calls_).contexts.erase(context_);
  }
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  bool cancelled() const {
    const MutexLock lock(&connection_->mutex_);
    return (connection_->*calls_).cancelled;
  }

 private:
  GrpcConnection* const connection_;
  Calls GrpcConnection::*const calls_;
  grpc::ClientContext* const context_;
};

}  // namespace atoll

#endif  // ATOLL_WORKER_CLIENT_REGISTRATION_H_

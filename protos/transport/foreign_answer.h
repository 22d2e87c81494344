#ifndef ATOLL_PROTOS_TRANSPORT_FOREIGN_ANSWER_H_
#define ATOLL_PROTOS_TRANSPORT_FOREIGN_ANSWER_H_

#include <string>

#include "grpcpp/support/status.h"

namespace atl {

/// The HTTP status that gRPC's client made `status` of ("404"): a web server or a proxy has answered. Empty:
/// it comes from elsewhere.
std::string HttpStatusIn(const grpc::Status& status);

/// Whether gRPC's client made `status` of an answer that breaks gRPC's protocol over HTTP/2: one without
/// grpc-status, or OK without a message.
bool BreaksGrpc(const grpc::Status& status);

/// Whether no Atoll coordinator answers so: the cases above, and UNKNOWN without details.
bool IsForeign(const grpc::Status& status);

}  // namespace atl

#endif  // ATOLL_PROTOS_TRANSPORT_FOREIGN_ANSWER_H_

#ifndef ATOLL_PROTOS_WIRE_STATUS_H_
#define ATOLL_PROTOS_WIRE_STATUS_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace atl {

/// The domain of our google.rpc.ErrorInfo.
inline constexpr char kErrorDomain[] = "atoll";

/// The one translation of errors to the wire. A detail (common/status_detail.h) becomes a serialised
/// google.rpc.Status with ErrorInfo and RetryInfo in error_details. Trailers of 8 KiB are all that a peer
/// accepts by default, so a long message is cut, and metadata that does not fit is left out.
grpc::Status StatusToGrpc(const absl::Status& status);

/// And from it. ErrorInfo of another domain, details that cannot be parsed and absurd delays are ignored; a
/// code that nobody knows is Unknown.
absl::Status StatusFromGrpc(const grpc::Status& status);

}  // namespace atl

#endif  // ATOLL_PROTOS_WIRE_STATUS_H_

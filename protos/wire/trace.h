#ifndef ATOLL_PROTOS_WIRE_TRACE_H_
#define ATOLL_PROTOS_WIRE_TRACE_H_

#include <map>

#include "common/trace_context.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/string_ref.h"

namespace atl {

/// Sends the thread's trace along with a call, with a span of its own; a new trace where there is none.
void SendTrace(grpc::ClientContext& context);

/// The trace that a call came with; a new one where it has none, more than one, or none that is valid.
TraceContext ReceivedTrace(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata);

}  // namespace atl

#endif  // ATOLL_PROTOS_WIRE_TRACE_H_

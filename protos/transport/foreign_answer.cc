#include "protos/transport/foreign_answer.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace atl {
namespace {

// What gRPC 1.51 writes: src/core/ext/filters/http/client, src/core/lib/surface/call.cc,
// src/core/ext/transport/chttp2/transport, include/grpcpp/impl/call_op_set.h.
constexpr std::string_view kHttpStatus = "Received http2 header with status: ";
constexpr std::array<std::string_view, 3> kBroken = {"No status received", "Stream removed",
                                                     "No message returned for unary request"};
// A handler of the coordinator has thrown: include/grpcpp/impl/codegen/method_handler.h.
constexpr std::string_view kThrown = "Unexpected error in RPC handling";

}  // namespace

std::string HttpStatusIn(const grpc::Status& status) {
  const std::string& said = status.error_message();
  return said.starts_with(kHttpStatus) ? said.substr(kHttpStatus.size()) : "";
}

bool BreaksGrpc(const grpc::Status& status) {
  return status.error_details().empty() &&
         std::find(kBroken.begin(), kBroken.end(), status.error_message()) != kBroken.end();
}

bool IsForeign(const grpc::Status& status) {
  if (!status.error_details().empty()) return false;
  if (BreaksGrpc(status) || !HttpStatusIn(status).empty()) return true;
  return status.error_code() == grpc::StatusCode::UNKNOWN && status.error_message() != kThrown;
}

}  // namespace atl

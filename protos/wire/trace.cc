#include "protos/wire/trace.h"

#include <optional>
#include <string_view>

namespace atl {
namespace {

constexpr char kKey[] = "traceparent";

}  // namespace

void SendTrace(grpc::ClientContext& context) {
  const TraceContext* const current = CurrentTrace();
  context.AddMetadata(kKey, FormatTraceparent(current == nullptr ? NewTrace() : NextSpan(*current)));
}

TraceContext ReceivedTrace(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  if (metadata.count(kKey) == 1) {
    const grpc::string_ref value = metadata.find(kKey)->second;
    if (const auto trace = ParseTraceparent(std::string_view(value.data(), value.size()))) return *trace;
  }
  return NewTrace();
}

}  // namespace atl

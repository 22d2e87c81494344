#include "protos/wire/status.h"

#include <optional>
#include <string>

#include "common/status_detail.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace atl {
namespace {

// The message travels twice (grpc-message, percent-encoded, and in the details); metadata once.
constexpr size_t kMaxMessageBytes = 1024;
constexpr size_t kMaxMetadataBytes = 1024;
constexpr int64_t kMaxRetrySeconds = int64_t{24} * 3600;

std::string Shortened(std::string message) {
  if (message.size() <= kMaxMessageBytes) return message;
  size_t end = kMaxMessageBytes;
  // Not in the middle of a UTF-8 sequence.
  while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xc0) == 0x80) --end;
  message.resize(end);
  return message + "...";
}

google::rpc::ErrorInfo ToErrorInfo(const StatusDetail& detail) {
  google::rpc::ErrorInfo info;
  info.set_reason(detail.reason);
  info.set_domain(kErrorDomain);
  size_t bytes = 0;
  for (const auto& [key, value] : detail.metadata) {
    bytes += key.size() + value.size();
    if (bytes > kMaxMetadataBytes) break;
    (*info.mutable_metadata())[key] = value;
  }
  return info;
}

google::rpc::RetryInfo ToRetryInfo(Duration delay) {
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(delay.count() / 1'000'000'000);
  info.mutable_retry_delay()->set_nanos(static_cast<int32_t>(delay.count() % 1'000'000'000));
  return info;
}

void ReadDetail(const google::protobuf::Any& any, StatusDetail* detail) {
  google::rpc::ErrorInfo error;
  google::rpc::RetryInfo retry;
  if (any.Is<google::rpc::ErrorInfo>() && any.UnpackTo(&error) && error.domain() == kErrorDomain) {
    detail->reason = error.reason();
    detail->metadata = {error.metadata().begin(), error.metadata().end()};
  }
  if (any.Is<google::rpc::RetryInfo>() && any.UnpackTo(&retry)) {
    const int64_t seconds = retry.retry_delay().seconds();
    const int32_t nanos = retry.retry_delay().nanos();
    const bool sane = seconds >= 0 && seconds <= kMaxRetrySeconds && nanos >= 0 && nanos < 1'000'000'000;
    if (sane) detail->retry_after = std::chrono::seconds(seconds) + Duration(nanos);
  }
}

absl::StatusCode CodeFromGrpc(grpc::StatusCode code) {
  const bool known = code >= grpc::StatusCode::OK && code <= grpc::StatusCode::UNAUTHENTICATED;
  return known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown;
}

// The two enumerations are one table, in gRPC's documentation and in Abseil's.
static_assert(static_cast<int>(grpc::StatusCode::UNAVAILABLE) ==
              static_cast<int>(absl::StatusCode::kUnavailable));
static_assert(static_cast<int>(grpc::StatusCode::UNAUTHENTICATED) ==
              static_cast<int>(absl::StatusCode::kUnauthenticated));

}  // namespace

grpc::Status StatusToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const auto code = static_cast<grpc::StatusCode>(status.code());
  const std::string message = Shortened(std::string(status.message()));
  const std::optional<StatusDetail> detail = DetailOf(status);
  if (!detail.has_value()) return grpc::Status(code, message);
  google::rpc::Status rich;
  rich.set_code(code);
  rich.set_message(message);
  if (!detail->reason.empty() || !detail->metadata.empty())
    rich.add_details()->PackFrom(ToErrorInfo(*detail));
  if (detail->retry_after.has_value()) rich.add_details()->PackFrom(ToRetryInfo(*detail->retry_after));
  return grpc::Status(code, message, rich.SerializeAsString());
}

absl::Status StatusFromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const absl::Status plain(CodeFromGrpc(status.error_code()), status.error_message());
  google::rpc::Status rich;
  if (status.error_details().empty() || !rich.ParseFromString(status.error_details())) return plain;
  StatusDetail detail;
  for (const google::protobuf::Any& any : rich.details()) ReadDetail(any, &detail);
  const bool nothing = detail.reason.empty() && detail.metadata.empty() && !detail.retry_after.has_value();
  return nothing ? plain : WithDetail(plain, detail);
}

}  // namespace atl

#include "cli/rpc_client.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"

namespace atoll {
namespace {

constexpr int kMaxReplyBytes = 16 << 20;

absl::Status FromGrpc(const grpc::Status& status, const std::string& address) {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  if (code == absl::StatusCode::kUnavailable || code == absl::StatusCode::kDeadlineExceeded) {
    return absl::UnavailableError(absl::StrFormat(
        "no coordinator answers on %s (%s); is it running, and is this its admin port (--admin ADDRESS)?",
        address, status.error_message()));
  }
  return absl::Status(code, status.error_message());
}

}  // namespace

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxReplyBytes);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

AdminClient::AdminClient(std::string address, Duration deadline)
    : address_(std::move(address)), deadline_(deadline), stub_(v1::Admin::NewStub(OpenChannel(address_))) {}

absl::StatusOr<v1::GetStatusReply> AdminClient::GetStatus(uint32_t history) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::milliseconds>(deadline_));
  context.set_wait_for_ready(true);
  v1::GetStatusRequest request;
  request.set_history(history);
  v1::GetStatusReply reply;
  const absl::Status status = FromGrpc(stub_->GetStatus(&context, request, &reply), address_);
  if (!status.ok()) return status;
  return reply;
}

absl::StatusOr<v1::ListWorkersReply> AdminClient::ListWorkers(bool all) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::duration_cast<std::chrono::milliseconds>(deadline_));
  context.set_wait_for_ready(true);
  v1::ListWorkersRequest request;
  request.set_all(all);
  v1::ListWorkersReply reply;
  const absl::Status status = FromGrpc(stub_->ListWorkers(&context, request, &reply), address_);
  if (!status.ok()) return status;
  return reply;
}

}  // namespace atoll

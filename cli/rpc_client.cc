#include "cli/rpc_client.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "grpcpp/channel.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "protos/wire/status.h"

namespace atoll {
namespace {

constexpr int kMaxReplyBytes = 16 << 20;

std::chrono::system_clock::time_point After(Duration duration) {
  return std::chrono::system_clock::now() + std::chrono::duration_cast<std::chrono::milliseconds>(duration);
}

}  // namespace

absl::Status FromGrpcStatus(const grpc::Status& status, const std::string& address) {
  const absl::Status translated = StatusFromGrpc(status);
  if (!absl::IsUnavailable(translated) && !absl::IsDeadlineExceeded(translated)) return translated;
  return absl::UnavailableError(absl::StrFormat(
      "no coordinator answers on %s (%s); is it running, and is this its address (--admin, --coordinator)?",
      address, translated.message()));
}

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxReplyBytes);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

AdminClient::AdminClient(std::string address, Duration deadline)
    : address_(std::move(address)), deadline_(deadline), stub_(v1::Admin::NewStub(OpenChannel(address_))) {}

absl::StatusOr<v1::GetStatusReply> AdminClient::GetStatus(uint32_t history) {
  grpc::ClientContext context;
  context.set_deadline(After(deadline_));
  context.set_wait_for_ready(true);
  v1::GetStatusRequest request;
  request.set_history(history);
  v1::GetStatusReply reply;
  const absl::Status status = FromGrpcStatus(stub_->GetStatus(&context, request, &reply), address_);
  if (!status.ok()) return status;
  return reply;
}

absl::StatusOr<v1::ListWorkersReply> AdminClient::ListWorkers(bool all) {
  grpc::ClientContext context;
  context.set_deadline(After(deadline_));
  context.set_wait_for_ready(true);
  v1::ListWorkersRequest request;
  request.set_all(all);
  v1::ListWorkersReply reply;
  const absl::Status status = FromGrpcStatus(stub_->ListWorkers(&context, request, &reply), address_);
  if (!status.ok()) return status;
  return reply;
}

}  // namespace atoll

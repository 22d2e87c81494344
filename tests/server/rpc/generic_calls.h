#ifndef ATOLL_TESTS_SERVER_RPC_GENERIC_CALLS_H_
#define ATOLL_TESTS_SERVER_RPC_GENERIC_CALLS_H_

#include <chrono>
#include <future>
#include <memory>
#include <string>

#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"

// Calls of services whose stubs the distribution does not have.

namespace atl {

inline grpc::ByteBuffer BufferOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

inline std::string BytesOf(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  if (!buffer.DumpToSingleSlice(&slice).ok()) return "";
  return std::string(reinterpret_cast<const char*>(slice.begin()), slice.size());
}

/// One unary call with these bytes; the answer's go to `response`.
inline grpc::Status GenericCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                                const std::string& request_bytes, std::string* response_bytes) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  const grpc::ByteBuffer request = BufferOf(request_bytes);
  grpc::ByteBuffer response;
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, method, grpc::StubOptions(), &request, &response,
                 [&](grpc::Status status) { done.set_value(std::move(status)); });
  grpc::Status status = done.get_future().get();
  *response_bytes = BytesOf(response);
  return status;
}

/// grpc.health.v1.HealthCheckResponse.status of a service: 1 SERVING, 2 NOT_SERVING; -1 when the call failed.
/// The two messages are one field each.
inline int HealthOf(const std::shared_ptr<grpc::Channel>& channel, const std::string& service) {
  const std::string request = std::string("\x0a") + static_cast<char>(service.size()) + service;
  std::string bytes;
  const grpc::Status status = GenericCall(channel, "/grpc.health.v1.Health/Check", request, &bytes);
  return status.ok() && bytes.size() == 2 && bytes[0] == 0x08 ? bytes[1] : -1;
}

/// The answer of grpc.reflection.v1alpha to list_services, undecoded: it holds the names. Empty when there is
/// no such service.
inline std::string ServicesOf(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  const auto wait = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto call =
      stub.PrepareCall(&context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  call->StartCall(nullptr);
  if (!wait()) return "";
  call->Write(BufferOf(std::string("\x3a\x01*")), nullptr);
  if (!wait()) return "";
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  return wait() ? BytesOf(answer) : "";
}

}  // namespace atl

#endif  // ATOLL_TESTS_SERVER_RPC_GENERIC_CALLS_H_

#ifndef ATOLL_TESTS_FAKES_LOOPBACK_SERVER_H_
#define ATOLL_TESTS_FAKES_LOOPBACK_SERVER_H_

#include <chrono>
#include <memory>
#include <string>

#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"

namespace atl {

/// Serves a gRPC service on a free port of 127.0.0.1 as long as it lives; at its end calls in progress are
/// cancelled. A service that owns its server declares it as its last member.
class LoopbackServer {
 public:
  explicit LoopbackServer(
      grpc::Service* service,
      const std::shared_ptr<grpc::ServerCredentials>& credentials = grpc::InsecureServerCredentials()) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", credentials, &port);
    builder.RegisterService(service);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) ADD_FAILURE() << "no server";
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;
  ~LoopbackServer() {
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  const std::string& address() const { return address_; }

 private:
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace atl

#endif  // ATOLL_TESTS_FAKES_LOOPBACK_SERVER_H_

#ifndef ATOLL_TESTS_SERVER_RPC_RPC_FIXTURE_H_
#define ATOLL_TESTS_SERVER_RPC_RPC_FIXTURE_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "atoll/v1/admin.grpc.pb.h"
#include "atoll/v1/coordinator.grpc.pb.h"
#include "common/crc32c.h"
#include "common/status_detail.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "protos/wire/protocol.h"
#include "protos/wire/status.h"
#include "server/rpc/server.h"
#include "tests/fakes/fake_coordinator.h"

namespace atl {

/// A real server on free ports of this machine over a coordinator that the test steers.
class RpcFixture : public ::testing::Test {
 protected:
  /// Limits short enough to wait for.
  static RpcServerOptions Options() {
    RpcServerOptions options;
    options.data_address = "127.0.0.1:0";
    options.admin_address = "127.0.0.1:0";
    options.watchdog_period = Seconds(0.02);
    options.shutdown_grace = Seconds(0.2);
    return options;
  }

  void Serve(const RpcServerOptions& options = Options(), Coordinator* other = nullptr) {
    auto server = RpcServer::Start(options, other == nullptr ? &coordinator_ : other, &clock_, Logger());
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    data_channel_ = grpc::CreateChannel(server_->data_address(), grpc::InsecureChannelCredentials());
    admin_channel_ = grpc::CreateChannel(server_->admin_address(), grpc::InsecureChannelCredentials());
    data_ = v1::Coordinator::NewStub(data_channel_);
    admin_ = v1::Admin::NewStub(admin_channel_);
  }

  /// A context that fails the test's patience, not the test's subject.
  static std::unique_ptr<grpc::ClientContext> Context() {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    return context;
  }

  static std::string ReasonIn(const grpc::Status& status) {
    const auto detail = DetailOf(StatusFromGrpc(status));
    return detail ? detail->reason : "";
  }

  static v1::WorkerRef Self() {
    v1::WorkerRef self;
    self.set_run_id("run");
    self.set_epoch(1);
    self.set_worker("w1");
    self.set_incarnation(1);
    return self;
  }

  static v1::JoinRequest JoinAs(const std::string& name) {
    v1::JoinRequest request;
    *request.mutable_protocol() = OurProtocolVersion();
    request.set_worker(name);
    request.set_secret(std::string(32, 's'));
    request.set_role(v1::ROLE_TRAINER);
    return request;
  }

  static v1::PushChunk PushHeaderOf(uint64_t payload_bytes) {
    v1::PushChunk message;
    *message.mutable_header()->mutable_worker() = Self();
    message.mutable_header()->set_codec(v1::CODEC_FP32);
    message.mutable_header()->set_payload_bytes(payload_bytes);
    return message;
  }

  static v1::PushChunk PushChunkOf(uint64_t offset, const std::string& data) {
    v1::PushChunk message;
    message.set_offset(offset);
    message.set_data(data);
    message.set_crc32c(Crc32c(data));
    return message;
  }

  static bool Eventually(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  const SystemClock clock_{};
  FakeCoordinator coordinator_;
  std::unique_ptr<RpcServer> server_;
  std::shared_ptr<grpc::Channel> data_channel_;
  std::shared_ptr<grpc::Channel> admin_channel_;
  std::unique_ptr<v1::Coordinator::Stub> data_;
  std::unique_ptr<v1::Admin::Stub> admin_;
};

}  // namespace atl

#endif  // ATOLL_TESTS_SERVER_RPC_RPC_FIXTURE_H_

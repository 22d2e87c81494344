// The ports' bounds (docs/reference/wire_format.md), over sockets.

#include <atomic>
#include <string>
#include <vector>

#include "tests/server/rpc/rpc_fixture.h"

namespace atl {
namespace {

class LimitsTest : public RpcFixture {
 protected:
  grpc::Status Join(const v1::JoinRequest& request) {
    v1::JoinReply reply;
    return data_->Join(Context().get(), request, &reply);
  }
  /// With a connection of its own.
  std::unique_ptr<v1::Coordinator::Stub> Another() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return v1::Coordinator::NewStub(
        grpc::CreateCustomChannel(server_->data_address(), grpc::InsecureChannelCredentials(), arguments));
  }
};

TEST_F(LimitsTest, WhatAWorkerSaysOfItselfHasALength) {
  std::atomic<int> rejected{0};
  RpcServerOptions options = Options();
  options.on_call_rejected = [&](std::string_view reason) { rejected += reason == "invalid_argument"; };
  Serve(options);
  v1::JoinRequest request = JoinAs("w1");
  request.mutable_capabilities()->set_device_name(std::string(1025, 'x'));
  const grpc::Status status = Join(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("capabilities.device_name"), std::string::npos);
  request.mutable_capabilities()->set_device_name(std::string(200 << 10, 'x'));
  EXPECT_EQ(Join(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(rejected, 2);
}

TEST_F(LimitsTest, AJoinWithTooManyTensorsSaysHowElseToJoin) {
  Serve();
  v1::JoinRequest request = JoinAs("w1");
  for (int i = 0; i < 2000; ++i) {
    v1::TensorSpec* tensor = request.mutable_manifest()->add_tensors();
    tensor->set_name(std::string(96, 'n') + std::to_string(1000 + i));
    tensor->add_shape(1);
  }
  const grpc::Status status = Join(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  for (const char* text : {"2000 tensors", "at most 131072", "give manifest_hash"}) {
    EXPECT_NE(status.error_message().find(text), std::string::npos) << text << ": " << status.error_message();
  }
}

TEST_F(LimitsTest, HiddenCharactersStayOutside) {
  DeviceDescription joined, repeated;
  std::string waits_for;
  coordinator_.on_join = [&](const JoinCall& call) {
    joined = call.device;
    return absl::UnavailableError("seen");
  };
  coordinator_.on_heartbeat = [&](const HeartbeatCall& call) {
    repeated = call.device.value_or(DeviceDescription{});
    waits_for = call.progress.waiting_for;
    return absl::UnavailableError("seen");
  };
  Serve();
  v1::JoinRequest join = JoinAs("w1");
  v1::HeartbeatRequest heartbeat;
  *heartbeat.mutable_worker() = Self();
  heartbeat.mutable_progress()->set_waiting_for("a\u202Eb\nc");
  for (v1::Capabilities* said : {join.mutable_capabilities(), heartbeat.mutable_capabilities()}) {
    said->set_device_name("H100\u202E 80GB\x1b[2J");
    said->set_device("cuda:0\n");
    said->set_software_version("1\u200B.0");
  }
  (void)Join(join);
  v1::HeartbeatReply reply;
  (void)data_->Heartbeat(Context().get(), heartbeat, &reply);
  for (const DeviceDescription& seen : {joined, repeated}) {
    EXPECT_EQ(seen.device_name, "H100 80GB[2J");
    EXPECT_EQ(seen.device, "cuda:0");
    EXPECT_EQ(seen.software_version, "1.0");
  }
  EXPECT_EQ(waits_for, "abc");
}

TEST_F(LimitsTest, AReasonIsCutBetweenCharacters) {
  std::string seen;
  coordinator_.on_leave = [&](const MemberRef&, const std::string& reason) {
    seen = reason;
    return absl::OkStatus();
  };
  Serve();
  v1::LeaveRequest request;
  *request.mutable_worker() = Self();
  std::string reason = "x";
  for (int i = 0; i < 600; ++i) reason += "\xc3\xa4";
  request.set_reason(reason);
  v1::LeaveReply reply;
  EXPECT_TRUE(data_->Leave(Context().get(), request, &reply).ok());
  EXPECT_EQ(seen, reason.substr(0, 199)) << "an event stores it";
}

TEST_F(LimitsTest, PackedMessagesAreRejected) {
  Serve();
  const auto context = Context();
  context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
  v1::JoinRequest request = JoinAs("w1");
  request.set_manifest_hash(std::string(1000, 'x'));  // worth packing
  v1::JoinReply reply;
  EXPECT_EQ(data_->Join(context.get(), request, &reply).error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(LimitsTest, WatchersBeyondTheBoundAreToldToComeBack) {
  RpcServerOptions options = Options();
  options.max_watchers = 1;
  Serve(options);
  const auto first_context = Context();
  const auto first = data_->WatchRun(first_context.get(), v1::WatchRunRequest());
  ASSERT_TRUE(Eventually([&] { return coordinator_.subscriptions() == 1; }));
  const auto watch = [&] {
    const auto context = Context();
    const auto stream = data_->WatchRun(context.get(), v1::WatchRunRequest());
    v1::RunEvent event;
    stream->Read(&event);
    return ReasonIn(stream->Finish());
  };
  EXPECT_EQ(watch(), "OVER_BUDGET");
  first_context->TryCancel();
  first->Finish();
  ASSERT_TRUE(Eventually([&] { return coordinator_.subscriptions() == 0; }));
  const auto next_context = Context();
  std::unique_ptr<grpc::ClientReader<v1::RunEvent>> next;
  next = data_->WatchRun(next_context.get(), v1::WatchRunRequest());
  EXPECT_TRUE(Eventually([&] { return coordinator_.subscriptions() == 1; })) << "the seat is free again";
  next_context->TryCancel();
  next->Finish();
}

TEST_F(LimitsTest, StreamsBeyondTheBoundAreToldToComeBack) {
  RpcServerOptions options = Options();
  options.max_streams = 1;
  Serve(options);
  const auto first_context = Context();
  const auto first = data_->WatchRun(first_context.get(), v1::WatchRunRequest());
  ASSERT_TRUE(Eventually([&] { return coordinator_.subscriptions() == 1; }));
  const auto context = Context();
  v1::PushReply reply;
  const auto push = data_->Push(context.get(), &reply);
  EXPECT_EQ(ReasonIn(push->Finish()), "OVER_BUDGET");
  first_context->TryCancel();
  first->Finish();
}

TEST_F(LimitsTest, AStrangersFirstMessageIsAHeaderOrNothing) {
  Serve();
  const auto context = Context();
  v1::PushReply reply;
  const auto push = data_->Push(context.get(), &reply);
  push->Write(PushChunkOf(0, std::string(1 << 20, 'x')));
  push->WritesDone();
  const grpc::Status status = push->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("header"), std::string::npos);
}

TEST_F(LimitsTest, ConnectionsBeyondTheBoundAreClosed) {
  std::atomic<int> rejected{0};
  RpcServerOptions options = Options();
  options.connections = {.total = 1, .per_address = 1};
  options.on_connection_rejected = [&](std::string_view port, std::string_view limit) {
    rejected += port == "data" && limit == "total";
  };
  Serve(options);
  EXPECT_TRUE(Join(JoinAs("w1")).ok());
  v1::JoinReply reply;
  EXPECT_EQ(Another()->Join(Context().get(), JoinAs("w2"), &reply).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_GE(rejected, 1);
  EXPECT_TRUE(Join(JoinAs("w1")).ok()) << "who is there stays";
}

}  // namespace
}  // namespace atl

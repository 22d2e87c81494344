// What gRPC's own counters say of one connection, over real sockets.
#include "server/rpc/stream_counter.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "common/bind_address.h"
#include "common/file_descriptor.h"
#include "grpcpp/create_channel_posix.h"
#include "tests/server/rpc/rpc_fixture.h"

namespace atl {
namespace {

/// A client on a connection of its own, whose port is known.
struct Client {
  explicit Client(uint16_t port) {
    FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    peer = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    EXPECT_EQ(::fcntl(socket.get(), F_SETFL, O_NONBLOCK), 0);
    stub = v1::Coordinator::NewStub(grpc::CreateInsecureChannelFromFd("test", socket.Release()));
  }

  std::string peer;
  std::unique_ptr<v1::Coordinator::Stub> stub;
};

class StreamCounterTest : public RpcFixture {
 protected:
  static uint16_t PortOf(const std::string& address) { return ParseBindAddress(address)->port; }
};

TEST_F(StreamCounterTest, CountsStreamsThatAreOpenAndForgetsThoseThatEnded) {
  Serve();
  const Client busy(PortOf(server_->data_address()));
  const Client idle(PortOf(server_->data_address()));
  StreamCounter counter(PortOf(server_->data_address()));
  StreamCounter of_other_port(PortOf(server_->admin_address()));
  const std::vector<std::string> peers = {busy.peer, idle.peer, "127.0.0.1:1"};

  struct Watch {
    std::unique_ptr<grpc::ClientContext> context = Context();
    std::unique_ptr<grpc::ClientReader<v1::RunEvent>> events;
  };
  std::vector<Watch> watches(5);
  for (Watch& watch : watches) watch.events = busy.stub->WatchRun(watch.context.get(), {});
  EXPECT_TRUE(Eventually([&] { return counter.Count(peers) == std::vector<uint64_t>{5, 0, 0}; }));
  EXPECT_EQ(of_other_port.Count(peers), (std::vector<uint64_t>{0, 0, 0}));

  for (Watch& watch : watches) {
    watch.context->TryCancel();
    EXPECT_EQ(watch.events->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_TRUE(Eventually([&] { return counter.Count(peers) == std::vector<uint64_t>{0, 0, 0}; }));
}

}  // namespace
}  // namespace atl

#include <sys/socket.h>

#include <cstring>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "atoll/v1/coordinator.grpc.pb.h"
#include "bench/exchange/bare.h"
#include "bench/exchange/sockets.h"
#include "common/file.h"
#include "common/status.h"
#include "grpcpp/server_builder.h"
#include "protos/wire/chunk_message.h"

namespace atl {
namespace {

constexpr size_t kPiece = size_t{1} << 20;

const std::vector<std::byte>& Zeros() {
  static const std::vector<std::byte> zeros(kPiece, std::byte{1});
  return zeros;
}

class Sink final : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  explicit Sink(grpc::ByteBuffer* reply) {
    *reply = MessageToBytes(v1::PushReply());
    StartRead(&message_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    StartRead(&message_);
  }
  void OnCancel() override {}
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer message_;
};

class Source final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  explicit Source(uint64_t bytes) : left_(bytes) { Next(); }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    Next();
  }
  void OnCancel() override {}
  void OnDone() override { delete this; }

 private:
  void Next() {
    if (left_ == 0) return Finish(grpc::Status::OK);
    const size_t size = std::min<uint64_t>(left_, kPiece);
    left_ -= size;
    message_ = ChunkMessage({.offset = left_}, std::span(Zeros()).first(size), nullptr);
    StartWrite(&message_);
  }

  uint64_t left_;
  grpc::ByteBuffer message_;
};

class BareService final : public v1::Coordinator::WithRawCallbackMethod_Push<
                              v1::Coordinator::WithRawCallbackMethod_Pull<v1::Coordinator::Service>> {
 public:
  grpc::ServerReadReactor<grpc::ByteBuffer>* Push(grpc::CallbackServerContext*,
                                                  grpc::ByteBuffer* reply) override {
    return new Sink(reply);
  }
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Pull(grpc::CallbackServerContext*,
                                                   const grpc::ByteBuffer* request) override {
    v1::PullRequest asked;
    (void)MessageFromBytes(*request, &asked);
    return new Source(asked.after_version());
  }
};

/// Per connection: two numbers, how much comes and how much is to go; a byte when all has come.
void ServeTcp(FileDescriptor socket) {
  uint64_t sizes[2];
  while (::recv(socket.get(), sizes, sizeof(sizes), MSG_WAITALL) == sizeof(sizes)) {
    const char done = 1;
    if (!ReadAway(socket.get(), sizes[0]).ok() || !WriteAll(socket.get(), &done, 1).ok()) return;
    char go = 0;
    if (::recv(socket.get(), &go, 1, MSG_WAITALL) != 1) return;
    const auto* const zeros = reinterpret_cast<const char*>(Zeros().data());
    for (uint64_t left = sizes[1]; left > 0;) {
      const size_t size = std::min<uint64_t>(left, kPiece);
      if (!WriteAll(socket.get(), zeros, size).ok()) return;
      left -= size;
    }
  }
}

}  // namespace

absl::Status ServeBare(const std::string& port_file) {
  ATOLL_ASSIGN_OR_RETURN(TcpListener listener, TcpListen());
  BareService service;
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(2 << 20);
  // As the coordinator's listener.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 1 << 20);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return absl::UnavailableError("the bare server cannot listen");
  ATOLL_RETURN_IF_ERROR(
      WriteFileAtomically(port_file, absl::StrCat("127.0.0.1:", port, "\n", listener.address, "\n")));
  while (true) {
    FileDescriptor socket(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.valid()) return absl::UnavailableError("the bare server cannot accept");
    std::thread(ServeTcp, std::move(socket)).detach();
  }
}

}  // namespace atl

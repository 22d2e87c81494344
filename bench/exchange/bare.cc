#include "bench/exchange/bare.h"

#include <sys/socket.h>
#include <unistd.h>

#include <sstream>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "atoll/v1/coordinator.pb.h"
#include "bench/exchange/crew.h"
#include "bench/exchange/sockets.h"
#include "client/rpc/channel.h"
#include "common/file.h"
#include "common/status.h"
#include "grpcpp/support/sync_stream.h"
#include "protos/wire/chunk_message.h"

namespace atl {
namespace {

constexpr size_t kPiece = size_t{1} << 20;
using grpc::internal::RpcMethod;

absl::Status Outcome(const grpc::Status& status) {
  return status.ok() ? absl::OkStatus() : absl::UnavailableError(status.error_message());
}

absl::Status GrpcPush(const std::shared_ptr<grpc::Channel>& channel, std::span<const std::byte> memory) {
  const RpcMethod method("/atoll.v1.Coordinator/Push", RpcMethod::CLIENT_STREAMING, channel);
  grpc::ClientContext context;
  grpc::ByteBuffer answer;
  const std::unique_ptr<grpc::ClientWriter<grpc::ByteBuffer>> writer(
      grpc::internal::ClientWriterFactory<grpc::ByteBuffer>::Create(channel.get(), method, &context,
                                                                    &answer));
  for (size_t offset = 0; offset < memory.size(); offset += kPiece) {
    const auto piece = memory.subspan(offset, std::min(kPiece, memory.size() - offset));
    if (!writer->Write(ChunkMessage({.offset = offset}, piece, nullptr))) break;
  }
  writer->WritesDone();
  return Outcome(writer->Finish());
}

absl::Status GrpcPull(const std::shared_ptr<grpc::Channel>& channel, uint64_t bytes) {
  const RpcMethod method("/atoll.v1.Coordinator/Pull", RpcMethod::SERVER_STREAMING, channel);
  grpc::ClientContext context;
  v1::PullRequest request;
  request.set_after_version(bytes);
  const std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> reader(
      grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(channel.get(), method, &context,
                                                                    MessageToBytes(request)));
  grpc::ByteBuffer message;
  uint64_t received = 0;
  while (reader->Read(&message)) received += message.Length();
  ATOLL_RETURN_IF_ERROR(Outcome(reader->Finish()));
  return received >= bytes ? absl::OkStatus() : absl::DataLossError("the bare stream lost bytes");
}

}  // namespace

absl::StatusOr<std::unique_ptr<BareStreams>> BareStreams::Start(const ExchangeSettings& settings) {
  std::unique_ptr<BareStreams> bare(new BareStreams);
  bare->folder_ = absl::StrCat(settings.dir, "/atoll-bare.", ::getpid());
  ATOLL_RETURN_IF_ERROR(CreateDirs(bare->folder_));
  const std::string ports = bare->folder_ + "/ports";
  ATOLL_ASSIGN_OR_RETURN(bare->process_,
                         Process::Start({settings.self, "--serve-bare", ports}, ports + ".log"));
  for (int i = 0; i < 1000 && bare->tcp_address_.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::istringstream(ReadFile(ports).value_or("")) >> bare->grpc_address_ >> bare->tcp_address_;
  }
  if (bare->tcp_address_.empty()) return absl::UnavailableError("the bare server does not serve");
  return bare;
}

BareStreams::~BareStreams() {
  process_.reset();
  RemoveAll(folder_).IgnoreError();
}

absl::StatusOr<double> BareStreams::Grpc(uint32_t workers, std::span<const std::byte> up,
                                         uint64_t down) const {
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (uint32_t i = 0; i < workers; ++i) {
    channels.push_back(MakeChannel({.address = grpc_address_}));
    channels.back()->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(5));
  }
  return RunCrew(workers,
                 {[&](uint32_t i) { return GrpcPush(channels[i], up); },
                  [&](uint32_t i) { return GrpcPull(channels[i], down); }},
                 /*lockstep=*/true);
}

absl::StatusOr<double> BareStreams::Tcp(uint32_t workers, std::span<const std::byte> up,
                                        uint64_t down) const {
  std::vector<FileDescriptor> sockets(workers);
  for (FileDescriptor& socket : sockets) {
    ATOLL_ASSIGN_OR_RETURN(socket, TcpConnect(tcp_address_));
  }
  const auto push = [&](uint32_t i) -> absl::Status {
    const uint64_t sizes[2] = {up.size(), down};
    ATOLL_RETURN_IF_ERROR(WriteAll(sockets[i].get(), reinterpret_cast<const char*>(sizes), sizeof(sizes)));
    ATOLL_RETURN_IF_ERROR(WriteAll(sockets[i].get(), reinterpret_cast<const char*>(up.data()), up.size()));
    return ReadAway(sockets[i].get(), 1);
  };
  const auto pull = [&](uint32_t i) -> absl::Status {
    const char go = 1;
    ATOLL_RETURN_IF_ERROR(WriteAll(sockets[i].get(), &go, 1));
    return ReadAway(sockets[i].get(), down);
  };
  return RunCrew(workers, {push, pull}, /*lockstep=*/true);
}

}  // namespace atl

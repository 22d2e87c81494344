#ifndef ATOLL_CLIENT_RPC_GRPC_PUSH_H_
#define ATOLL_CLIENT_RPC_GRPC_PUSH_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "atoll/v1/coordinator.grpc.pb.h"
#include "client/rpc/borrowed_buffer.h"
#include "client/rpc/call_set.h"
#include "client/rpc/call_setup.h"
#include "client/sync/connection.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/sync_stream.h"

namespace atl {

/// The calls that stream to the coordinator. Thread-safe.
class GrpcPush {
 public:
  /// `setup` outlives it.
  GrpcPush(const CallSetup* setup, const std::shared_ptr<grpc::Channel>& channel);

  /// CoordinatorConnection::Push and SeedParameters.
  absl::StatusOr<PushReceipt> Push(const MemberRef& member, const PushHeader& push_header,
                                   std::span<const std::byte> payload, uint64_t from);
  absl::Status Seed(const MemberRef& member, const Manifest& manifest,
                    std::span<const SeedFragment> fragments);
  /// Of pushes and seeds.
  void Cancel() { pushes_.Cancel(); }
  /// A push that is cancelled soon must end at once, also when its bytes fill the socket of a coordinator
  /// that reads nothing: from here on chunks are copied, so that nobody waits until gRPC has given the
  /// payload back.
  void PrepareToStop() { copies_ = true; }

 private:
  using ByteWriter = grpc::ClientWriter<grpc::ByteBuffer>;

  /// Push, with a payload that `owner` keeps.
  absl::StatusOr<PushReceipt> Send(const MemberRef& member, const PushHeader& push_header,
                                   std::span<const std::byte> payload, uint64_t from,
                                   const std::shared_ptr<const void>& owner);
  /// Until gRPC reads nothing of it any more.
  void AwaitReturn(const BorrowedBuffer& borrowed) const;

  const CallSetup* const setup_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Coordinator::Stub> stub_;
  const grpc::internal::RpcMethod push_method_;  // as bytes, which the stub does not offer
  CallSet pushes_;
  std::atomic<bool> copies_{false};
};

}  // namespace atl

#endif  // ATOLL_CLIENT_RPC_GRPC_PUSH_H_

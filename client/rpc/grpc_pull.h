#ifndef ATOLL_CLIENT_RPC_GRPC_PULL_H_
#define ATOLL_CLIENT_RPC_GRPC_PULL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/rpc/call_set.h"
#include "client/rpc/call_setup.h"
#include "client/sync/connection.h"
#include "common/clock.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/sync_stream.h"

namespace atl {

class RangePull;
class StallGuard;

/// Pulls a version, over one stream or over several side by side. Thread-safe.
class GrpcPull {
 public:
  /// `setup` and `clock` outlive it.
  GrpcPull(const CallSetup* setup, const std::shared_ptr<grpc::Channel>& channel, const Clock* clock);

  /// CoordinatorConnection::Pull, CancelPulls and EndPulls.
  absl::StatusOr<PulledVersion> Pull(const MemberRef& member, const PullRequest& pull_request,
                                     std::span<std::byte> payload);
  void Cancel() { pulls_.Cancel(); }
  void EndWaiting() { pulls_.EndWaiting(); }

 private:
  using ByteReader = grpc::ClientReader<grpc::ByteBuffer>;

  std::unique_ptr<ByteReader> StartPull(grpc::ClientContext& context, const MemberRef& member,
                                        const PullRequest& pull_request) const;
  /// The parts that the stream itself does not bring.
  std::vector<std::unique_ptr<RangePull>> StartRangePulls(const MemberRef& member,
                                                          const PullRequest& pull_request,
                                                          const PulledVersion& pulled,
                                                          std::span<std::byte> payload);
  /// The data that follows the header, all of it checked.
  absl::Status Receive(const MemberRef& member, const PullRequest& pull_request, const PulledVersion& pulled,
                       std::span<std::byte> payload, ByteReader& reader, StallGuard& guard,
                       uint64_t* wire_bytes);

  const CallSetup* const setup_;
  const Clock* const clock_;
  const std::shared_ptr<grpc::Channel> channel_;
  const grpc::internal::RpcMethod pull_method_;  // as bytes, which the stub does not offer
  CallSet pulls_;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_RPC_GRPC_PULL_H_

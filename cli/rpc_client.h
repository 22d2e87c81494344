#ifndef ATOLL_CLI_RPC_CLIENT_H_
#define ATOLL_CLI_RPC_CLIENT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "atoll/v1/admin.grpc.pb.h"
#include "atoll/v1/coordinator.grpc.pb.h"
#include "common/clock.h"

namespace atoll {

/// A channel to a coordinator's port, for one-shot tools. Thread-safe.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address);

/// What a call to `address` came to: a coordinator that does not answer is explained, everything else
/// translated by protos/wire.
absl::Status FromGrpcStatus(const grpc::Status& status, const std::string& address);

/// The admin port, in Status. Calls wait at most `deadline` for a coordinator that is not (yet) there.
class AdminClient {
 public:
  AdminClient(std::string address, Duration deadline);
  absl::StatusOr<v1::GetStatusReply> GetStatus(uint32_t history);
  absl::StatusOr<v1::ListWorkersReply> ListWorkers(bool all);

 private:
  const std::string address_;
  const Duration deadline_;
  std::unique_ptr<v1::Admin::Stub> stub_;
};

}  // namespace atoll

#endif  // ATOLL_CLI_RPC_CLIENT_H_

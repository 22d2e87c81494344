#ifndef ATOLL_CLIENT_RPC_GRPC_CONNECTION_H_
#define ATOLL_CLIENT_RPC_GRPC_CONNECTION_H_

#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "atoll/v1/coordinator.grpc.pb.h"
#include "client/rpc/call_set.h"
#include "client/rpc/call_setup.h"
#include "client/rpc/grpc_pull.h"
#include "client/rpc/grpc_push.h"
#include "client/sync/connection.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "grpcpp/channel.h"

namespace atl {

/// The coordinator over gRPC. Streams have no deadline, but are cancelled when they stall. Thread-safe.
class GrpcConnection final : public CoordinatorConnection {
 public:
  /// `clock` outlives this object.
  GrpcConnection(GrpcConnectionOptions options, const std::shared_ptr<grpc::Channel>& channel,
                 const Clock* clock);

  absl::StatusOr<JoinedRun> Join(const JoinCall& call) override;
  absl::StatusOr<HeartbeatReply> Heartbeat(const MemberRef& member, const HeartbeatCall& call) override;
  absl::Status SeedParameters(const MemberRef& member, const Manifest& manifest,
                              std::span<const SeedFragment> fragments) override;
  absl::StatusOr<PulledVersion> Pull(const MemberRef& member, const PullRequest& pull_request,
                                     std::span<std::byte> payload) override;
  absl::StatusOr<PushReceipt> Push(const MemberRef& member, const PushHeader& push_header,
                                   std::span<const std::byte> payload, uint64_t from) override;
  absl::StatusOr<PushStatusReply> GetPushStatus(const MemberRef& member, const PushKey& key) override;
  absl::Status Leave(const MemberRef& member, const std::string& reason) override;
  absl::StatusOr<ConfirmationPage> GetConfirmations(const MemberRef& member, const ConfirmationQuery& query,
                                                    Duration timeout) override;
  void CancelPulls() override;
  void EndPulls() override;
  void CancelPushes() override;
  void CancelCalls(Duration leave_within) override;

 private:
  /// One attempt at a call with one answer, `call(context)`, that CancelCalls ends, or Cancel of `calls`.
  template <typename Call>
  absl::Status CallWithin(Duration deadline, Call call, CallSet* calls = nullptr);
  /// Waits for the answer, after CancelCalls for no longer than a Leave takes.
  grpc::Status FinishJoin(grpc::ClientContext& context, const v1::JoinRequest& request, v1::JoinReply& reply);
  Duration LeaveDeadline() ABSL_LOCKS_EXCLUDED(mutex_);

  const CallSetup setup_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Coordinator::Stub> stub_;
  GrpcPush push_;
  GrpcPull pull_;
  CallSet calls_;   // with one answer, all but Leave
  CallSet leaves_;  // never cancelled permanently
  CallSet joins_;   // that make this worker a member
  Mutex mutex_;
  Duration leave_within_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_CLIENT_RPC_GRPC_CONNECTION_H_

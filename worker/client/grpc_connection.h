#ifndef ATOLL_WORKER_CLIENT_GRPC_CONNECTION_H_
#define ATOLL_WORKER_CLIENT_GRPC_CONNECTION_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "atoll/v1/coordinator.grpc.pb.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/sync_stream.h"
#include "protos/transport/channel_security.h"
#include "worker/client/borrowed_buffer.h"
#include "worker/sync/connection.h"

namespace atl {

class StallGuard;

struct GrpcConnectionOptions {
  std::string address;                 // for messages
  DeviceDescription device = {};       // for heartbeats; empty: they say nothing of it
  Duration connect_wait = Seconds(1);  // for a connection, at the beginning of a call; then the call fails
  Duration unary_deadline = Seconds(15);
  Duration leave_deadline = Seconds(5);
  Duration stall = Seconds(30);  // a stream that moves nothing for so long is cancelled
  Duration push_answer =
      Seconds(60);  // from the last byte of a push to its answer: the coordinator syncs a file
  Duration seed_answer =
      Seconds(600);  // from the last byte of the seed to its answer: it writes the whole model
  std::shared_ptr<const ChannelSecurity> security = nullptr;  // of the channel; null: nobody in particular
  /// A payload is pulled in as many parts more, side by side: for links where one connection does not get
  /// what several get.
  std::vector<std::shared_ptr<grpc::Channel>> range_channels = {};
};

/// The coordinator over gRPC. Streams have no deadline, but are cancelled when they stall. Thread-safe.
class GrpcConnection final : public CoordinatorConnection {
 public:
  /// `clock` outlives this object.
  GrpcConnection(GrpcConnectionOptions options, const std::shared_ptr<grpc::Channel>& channel,
                 const Clock* clock);

  absl::StatusOr<JoinInfo> Join(const JoinParameters& parameters) override;
  absl::StatusOr<HeartbeatReply> Heartbeat(const MemberRef& member,
                                           const HeartbeatReport& heartbeat_report) override;
  absl::Status SeedParameters(const MemberRef& member, const Manifest& manifest,
                              std::span<const SeedFragment> fragments) override;
  absl::StatusOr<PulledVersion> Pull(const MemberRef& member, const PullRequest& pull_request,
                                     std::span<std::byte> payload) override;
  absl::StatusOr<PushReceipt> Push(const MemberRef& member, const PushHeader& push_header,
                                   std::span<const std::byte> payload, uint64_t from) override;
  absl::StatusOr<PushStatus> GetPushStatus(const MemberRef& member, const PushKey& key) override;
  absl::Status Leave(const MemberRef& member, const std::string& reason) override;
  absl::StatusOr<ShownConfirmations> GetConfirmations(const MemberRef& member,
                                                      const ConfirmationsRequest& query) override;
  void CancelPulls() override;
  void EndPulls() override;
  void CancelPushes() override;

 private:
  /// The calls of one kind that are in progress, so that they can be ended.
  struct Calls {
    std::set<grpc::ClientContext*> contexts;
    std::set<grpc::ClientContext*> waiting;  // of them, those that have no answer yet
    std::set<grpc::ClientContext*> ended;    // and those that were ended for this
    bool cancelled = false;
  };
  class Registration;
  class RangePull;
  using ByteReader = grpc::ClientReader<grpc::ByteBuffer>;
  using ByteWriter = grpc::ClientWriter<grpc::ByteBuffer>;

  /// Push, with a payload that `owner` keeps.
  absl::StatusOr<PushReceipt> Send(const MemberRef& member, const PushHeader& push_header,
                                   std::span<const std::byte> payload, uint64_t from,
                                   const std::shared_ptr<const void>& owner);
  /// Until gRPC reads nothing of it any more.
  void AwaitReturn(const BorrowedBuffer& borrowed) const;
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

  void Cancel(Calls GrpcConnection::*calls) ABSL_LOCKS_EXCLUDED(mutex_);

  void AwaitConnection() const { AwaitConnection(*channel_); }
  void AwaitConnection(grpc::Channel& channel) const;
  /// For every call: who we are, and the trace that it belongs to.
  void Introduce(grpc::ClientContext& context) const;
  /// The same, with a deadline.
  void Begin(grpc::ClientContext& context, Duration deadline) const;
  /// The status of a call that this side did not cancel (call_status.h); names the address, and what is wrong
  /// with the connection, when nobody answered there.
  absl::Status Translate(const grpc::Status& status) const;
  absl::Status Translate(const grpc::Status& status, bool stalled) const;

  const GrpcConnectionOptions options_;
  const Clock* const clock_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Coordinator::Stub> stub_;
  // As bytes, which the stub does not offer.
  const grpc::internal::RpcMethod push_method_;
  const grpc::internal::RpcMethod pull_method_;
  Mutex mutex_;
  Calls pulls_ ABSL_GUARDED_BY(mutex_);
  Calls pushes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_WORKER_CLIENT_GRPC_CONNECTION_H_

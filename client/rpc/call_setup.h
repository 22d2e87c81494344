#ifndef ATOLL_CLIENT_RPC_CALL_SETUP_H_
#define ATOLL_CLIENT_RPC_CALL_SETUP_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/rpc/call_set.h"
#include "client/sync/connection.h"
#include "common/clock.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "protos/transport/channel_security.h"

namespace atl {

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

/// What all calls to the coordinator have in common. Thread-safe.
class CallSetup {
 public:
  explicit CallSetup(GrpcConnectionOptions options) : options_(std::move(options)) {}

  const GrpcConnectionOptions& options() const { return options_; }

  /// Waits for `connect_wait` at most, and not for a call of `calls`, all of which are cancelled.
  void AwaitConnection(grpc::Channel& channel, const CallSet& calls) const;
  /// For every call: who we are, and the trace that it belongs to.
  void Introduce(grpc::ClientContext& context) const;
  /// The same, with a deadline.
  void Begin(grpc::ClientContext& context, Duration deadline) const;
  /// The status of a call that this side did not cancel (call_status.h); names the address, and what is wrong
  /// with the connection, when nobody answered there.
  absl::Status Translate(const grpc::Status& status) const;
  absl::Status Translate(const grpc::Status& status, bool stalled) const;

 private:
  const GrpcConnectionOptions options_;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_RPC_CALL_SETUP_H_

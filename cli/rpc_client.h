#ifndef ATOLL_CLI_RPC_CLIENT_H_
#define ATOLL_CLI_RPC_CLIENT_H_

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "atoll/v1/admin.grpc.pb.h"
#include "atoll/v1/coordinator.grpc.pb.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "protos/transport/channel_security.h"

namespace atl {

/// Of the channel; outlives its calls. Never null.
using SecurityPtr = std::shared_ptr<const ChannelSecurity>;

/// A channel to a coordinator's port, for one-shot tools. Thread-safe.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const ChannelSecurity& security);

/// Takes a line for the user about a wait that lasts; null: nobody wants to hear.
using WaitNotice = std::function<void(const std::string&)>;

/// Waits at most this long for a coordinator that is not there (yet), on the port that the caller needs.
/// InvalidArgument when `address` is none,
/// or a token must not travel there; Unavailable when nobody answers, or certificates are in the way, and
/// how; Cancelled soon after `*cancelled` is set. Calls `notice` once, after a second, when there is more to
/// wait.
absl::Status AwaitConnection(grpc::Channel& channel, const std::string& address,
                             const ChannelSecurity& security, Duration deadline, CoordinatorPort port,
                             const std::atomic<bool>* cancelled = nullptr,
                             const WaitNotice& notice = nullptr);

/// What a call of this port's service to `address` came to: a coordinator that does not answer, or does not
/// know the call, is explained, as is another program that answers (Unavailable), everything else translated
/// by protos/wire and marked as its answer (cli/exit_code.h).
absl::Status FromGrpcStatus(const grpc::Status& status, const std::string& address, CoordinatorPort port);

/// The admin port, in Status. Every call waits at most the deadline for a coordinator that is not (yet)
/// there; then those that only look have that long for their answer, and those that work on the disk as long
/// as it takes; one whose peer stops answering altogether fails with Unavailable within half a minute. Not
/// thread-safe, except for Cancel.
class AdminClient {
 public:
  /// `user` goes into the audit line of what is changed, beside who is proven; empty: nobody is named.
  AdminClient(std::string address, Duration deadline, std::string user = "",
              SecurityPtr security = ChannelSecurity::Plain(), WaitNotice notice = nullptr);

  /// From now on a call waits only so long, instead of the deadline, for a coordinator that is not there.
  void ConnectWithin(Duration timeout) { connect_within_ = std::min(timeout, deadline_); }

  /// Ends the call in progress, and every later one, with Cancelled.
  void Cancel();

  absl::StatusOr<v1::GetStatusReply> GetStatus(uint32_t history);
  /// `worker` not empty: only that one.
  absl::StatusOr<v1::ListWorkersReply> ListWorkers(bool all, const std::string& worker = "");
  absl::StatusOr<v1::GetMetricsReply> GetMetrics();
  absl::StatusOr<v1::ListConfigsReply> ListConfigs();
  absl::StatusOr<v1::LauncherStatus> GetLauncher();

  absl::StatusOr<v1::ControlRunReply> ControlRun(const v1::ControlRunRequest& request);
  absl::StatusOr<v1::SetConfigReply> SetConfig(const v1::SetConfigRequest& request);
  absl::StatusOr<v1::ExtendRunReply> ExtendRun(const v1::ExtendRunRequest& request);
  absl::StatusOr<v1::ControlWorkerReply> ControlWorker(const v1::ControlWorkerRequest& request);
  absl::StatusOr<v1::ScaleWorkersReply> ScaleWorkers(const v1::ScaleWorkersRequest& request);

  absl::StatusOr<v1::CreateTokenReply> CreateToken(const v1::CreateTokenRequest& request);
  absl::StatusOr<v1::ListTokensReply> ListTokens();
  absl::StatusOr<v1::TokenInfo> RevokeToken(const std::string& id);

  absl::StatusOr<v1::CreateCheckpointReply> CreateCheckpoint(const std::string& name);
  absl::StatusOr<v1::ListCheckpointsReply> ListCheckpoints(bool check);
  absl::StatusOr<v1::RestoreCheckpointReply> RestoreCheckpoint(const std::string& name);
  absl::Status DeleteCheckpoint(const std::string& name);

  /// `sink` returns false to end the stream.
  absl::Status Verify(std::optional<uint64_t> version,
                      const std::function<bool(const v1::VerifyProgress&)>& sink);
  /// All pages of one fragment. Nothing in them was checked.
  absl::StatusOr<v1::ConfirmationPage> ListConfirmations(const v1::ListConfirmationsRequest& request);
  absl::Status ExportMetrics(const std::function<bool(const v1::MetricPoint&)>& sink);

 private:
  class InProgress;
  std::unique_ptr<grpc::ClientContext> Context(std::optional<Duration> deadline) const;
  template <typename Request, typename Reply>
  absl::StatusOr<Reply> Call(grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                     Reply*),
                             const Request& request, std::optional<Duration> deadline);
  template <typename Message, typename Open>
  absl::Status Stream(const Open& open, const std::function<bool(const Message&)>& sink);

  const std::string address_;
  const Duration deadline_;
  Duration connect_within_;
  const std::string user_;
  const SecurityPtr security_;
  const WaitNotice notice_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Admin::Stub> stub_;

  std::atomic<bool> cancelled_ = false;
  Mutex mutex_;
  grpc::ClientContext* current_ ABSL_GUARDED_BY(mutex_) = nullptr;  // of the call in progress
};

}  // namespace atl

#endif  // ATOLL_CLI_RPC_CLIENT_H_

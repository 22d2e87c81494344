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
#include "client/parameters/stored_parameters.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "protos/transport/channel_security.h"

namespace atl {

/// Of the channel; outlives its calls. Never null.
using SecurityPtr = std::shared_ptr<const ChannelSecurity>;

/// A channel to a coordinator's port, for one-shot tools. Thread-safe.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const ChannelSecurity& security);

/// Called with a line for the user about a long wait; null: no notices.
using WaitNotice = std::function<void(const std::string&)>;

/// Waits at most this long for a coordinator to answer on this port. InvalidArgument if `address` is invalid
/// or a token must not be sent there; Unavailable if nobody answers or certificates are wrong, with the
/// reason; Cancelled soon after `*cancelled` is set. Calls `notice` once, after a second, if it has to wait
/// longer.
absl::Status AwaitConnection(grpc::Channel& channel, const std::string& address,
                             const ChannelSecurity& security, Duration deadline, CoordinatorPort port,
                             const std::atomic<bool>* cancelled = nullptr,
                             const WaitNotice& notice = nullptr);

/// Translates the result of a call to this port of `address`. Explains a coordinator that does not answer or
/// does not know the call, and another program on the port (Unavailable). Everything else is translated by
/// protos/wire and marked as the coordinator's answer (cli/exit_code.h).
absl::Status FromGrpcStatus(const grpc::Status& status, const std::string& address, CoordinatorPort port);

/// A client of the admin port that returns absl::Status. Every call waits at most the deadline for a
/// coordinator to answer. After that, calls that only read have the deadline again for their answer; calls
/// that work on the disk have no deadline. A call whose peer stops answering altogether fails with
/// Unavailable within half a minute. Not thread-safe, except for Cancel.
class AdminClient {
 public:
  /// `user` goes into the audit line of a change, in addition to the authenticated caller; empty: no name.
  /// Every call fails with the error of `security`, if it is one.
  AdminClient(std::string address, Duration deadline, std::string user = "",
              absl::StatusOr<SecurityPtr> security = ChannelSecurity::Plain(), WaitNotice notice = nullptr);

  /// Later calls wait this long, instead of the deadline, for a coordinator to answer.
  void ConnectWithin(Duration timeout) { connect_within_ = std::min(timeout, deadline_); }

  /// Ends the call in progress and every later call with Cancelled.
  void Cancel();

  absl::StatusOr<v1::GetStatusReply> GetStatus(uint32_t history);
  /// If `worker` is not empty, lists only that worker.
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

  /// `check` sees the run before its tensors are read, and may reject it.
  absl::StatusOr<StoredParameters> ReadParameters(const ParametersQuery& query, const CheckRun& check);

  /// `sink` returns false to end the stream.
  absl::Status Verify(std::optional<uint64_t> version,
                      const std::function<bool(const v1::VerifyProgress&)>& sink);
  /// Reads all pages of one fragment. Their contents are unchecked.
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
  const absl::Status unsecured_;  // why there is no security
  const SecurityPtr security_;
  const WaitNotice notice_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Admin::Stub> stub_;

  std::atomic<bool> cancelled_ = false;
  Mutex mutex_;
  grpc::ClientContext* current_ ABSL_GUARDED_BY(mutex_) = nullptr;  // the call in progress
};

}  // namespace atl

#endif  // ATOLL_CLI_RPC_CLIENT_H_

#include "cli/rpc_client.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "cli/address.h"
#include "cli/exit_code.h"
#include "client/parameters/parameters_assembler.h"
#include "common/human.h"
#include "common/status.h"
#include "grpcpp/channel.h"
#include "protos/transport/client_channel.h"
#include "protos/transport/foreign_answer.h"
#include "protos/wire/status.h"
#include "protos/wire/trace.h"

namespace atl {
namespace {

constexpr int kMaxReplyBytes = 64 << 20;
constexpr int kReconnectMilliseconds = 200;
constexpr std::optional<Duration> kAsLongAsItTakes;
constexpr Duration kAskWhyAfter = Seconds(1);
constexpr Duration kWorthANotice = Seconds(1);  // minimum remaining wait for a notice
constexpr Duration kCancelledWithin = Seconds(0.1);
// Longer than the minimum interval that the coordinator allows (server/rpc/listener.cc).
constexpr int kPingMilliseconds = 10'000;
// Limits for all confirmations of a fragment: 200 versions signed by 10,000 workers, in about 500 MB of
// memory. A page covers at least 256 versions or is full (docs/reference/wire_format.md, "Bounds").
constexpr int kMostConfirmations = 1 << 21;
constexpr int kMostPages = 1 << 14;

std::chrono::system_clock::time_point After(Duration duration) {
  // gRPC converts it to a duration immediately, so later jumps of the wall clock do not matter.
  return std::chrono::system_clock::now() + std::chrono::duration_cast<std::chrono::milliseconds>(duration);
}

bool IsBehind(const v1::ConfirmationCursor& next, const v1::ConfirmationCursor& last) {
  return std::pair(next.version(), next.worker()) > std::pair(last.version(), last.worker());
}

absl::Status NobodyAnswers(const std::string& address, const std::string& why) {
  return absl::UnavailableError(
      absl::StrFormat("no coordinator answers on %s%s; check that it is running and that the address is "
                      "right (--admin, --coordinator)",
                      address, why.empty() ? "" : " (" + why + ")"));
}

absl::Status NotACoordinator(const std::string& address, const grpc::Status& status) {
  const std::string http = HttpStatusIn(status);
  std::string why = http.empty() ? status.error_message() : "it answers with HTTP status " + http;
  if (why.empty()) why = "it answers with gRPC status UNKNOWN without a message";
  return absl::UnavailableError(absl::StrFormat(
      "the server on %s is not an Atoll coordinator (%s); check the address (--admin, --coordinator)",
      address, why));
}

/// Returns whether the channel connects before the deadline.
bool Connect(grpc::Channel& channel, Duration deadline, const std::atomic<bool>* cancelled) {
  const auto until = std::chrono::steady_clock::now() + deadline;
  while (cancelled == nullptr || !*cancelled) {
    const Duration rest = until - std::chrono::steady_clock::now();
    if (rest <= Duration::zero()) return false;
    if (channel.WaitForConnected(After(std::min(rest, kCancelledWithin)))) return true;
  }
  return false;
}

absl::Status CheckNotCancelled(const std::atomic<bool>* cancelled) {
  return cancelled != nullptr && *cancelled ? absl::CancelledError("interrupted") : absl::OkStatus();
}

/// Metadata must be printable ASCII, but a user's name may contain other characters.
std::string MetadataValue(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '?');
  return text;
}

}  // namespace

absl::Status FromGrpcStatus(const grpc::Status& status, const std::string& address, CoordinatorPort port) {
  if (IsForeign(status)) return NotACoordinator(address, status);
  const absl::Status translated = StatusFromGrpc(status);
  if (absl::IsUnimplemented(translated)) {
    const bool data = port == CoordinatorPort::kData;
    return FromCoordinator(absl::UnimplementedError(absl::StrFormat(
        "the coordinator on %s does not know this call, which goes to its %s port (%s): either this is its "
        "%s port, or the coordinator is older than this atollctl",
        address, data ? "data" : "admin", data ? "--coordinator" : "--admin", data ? "admin" : "data")));
  }
  const bool no_answer = absl::IsUnavailable(translated) || absl::IsDeadlineExceeded(translated);
  // A status with details is a rejection by the coordinator.
  if (!no_answer || !status.error_details().empty()) return FromCoordinator(translated);
  return NobodyAnswers(address, std::string(translated.message()));
}

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const ChannelSecurity& security) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxReplyBytes);
  // Retry often, so that a coordinator that is just starting is found soon.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMilliseconds);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMilliseconds);
  // A command that changes something waits as long as the coordinator works on it, but not for a frozen
  // coordinator.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kPingMilliseconds);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingMilliseconds);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  return CreateClientChannel(address, security, arguments);
}

absl::Status AwaitConnection(grpc::Channel& channel, const std::string& address,
                             const ChannelSecurity& security, Duration deadline, CoordinatorPort port,
                             const std::atomic<bool>* cancelled, const WaitNotice& notice) {
  ATOLL_RETURN_IF_ERROR(ParseTarget(address).status());
  ATOLL_RETURN_IF_ERROR(security.CheckTarget(address));
  // gRPC polls a channel without calls only every five seconds (GRPC_CLIENT_CHANNEL_BACKUP_POLL_INTERVAL_MS).
  // This wait polls it immediately.
  const MonoTime begin = SteadyNow();
  const Duration soon = std::min(deadline, kAskWhyAfter);
  if (Connect(channel, soon, cancelled)) return absl::OkStatus();
  ATOLL_RETURN_IF_ERROR(CheckNotCancelled(cancelled));
  // Waiting does not help if a certificate is wrong.
  const std::string why = security.WhyNoConnection(address, "", port);
  if (!why.empty()) return absl::UnavailableError(absl::StrFormat("no connection to %s: %s", address, why));
  if (notice != nullptr && deadline - soon >= kWorthANotice) {
    notice(absl::StrFormat("no coordinator answers on %s yet; retrying for %s", address,
                           HumanDuration(deadline)));
  }
  // The look at the certificates has taken its part.
  const Duration left = std::max<Duration>(Duration(0), deadline - (SteadyNow() - begin));
  if (Connect(channel, left, cancelled)) return absl::OkStatus();
  ATOLL_RETURN_IF_ERROR(CheckNotCancelled(cancelled));
  return NobodyAnswers(address, absl::StrFormat("tried for %.1f s", ToSeconds(SteadyNow() - begin)));
}

AdminClient::AdminClient(std::string address, Duration deadline, std::string user,
                         absl::StatusOr<SecurityPtr> security, WaitNotice notice)
    : address_(std::move(address)),
      deadline_(deadline),
      connect_within_(deadline),
      user_(MetadataValue(std::move(user))),
      unsecured_(security.status()),
      security_(security.ok() ? *std::move(security) : ChannelSecurity::Plain()),
      notice_(std::move(notice)),
      channel_(OpenChannel(address_, *security_)),
      stub_(v1::Admin::NewStub(channel_)) {}

/// The call that Cancel ends.
class AdminClient::InProgress {
 public:
  InProgress(AdminClient& client, grpc::ClientContext* context) : client_(client) {
    const MutexLock lock(&client_.mutex_);
    client_.current_ = context;
    if (client_.cancelled_) context->TryCancel();
  }
  ~InProgress() {
    const MutexLock lock(&client_.mutex_);
    client_.current_ = nullptr;
  }
  InProgress(const InProgress&) = delete;
  InProgress& operator=(const InProgress&) = delete;

 private:
  AdminClient& client_;
};

void AdminClient::Cancel() {
  const MutexLock lock(&mutex_);
  cancelled_ = true;
  if (current_ != nullptr) current_->TryCancel();
}

std::unique_ptr<grpc::ClientContext> AdminClient::Context(std::optional<Duration> deadline) const {
  auto context = std::make_unique<grpc::ClientContext>();
  if (deadline.has_value()) context->set_deadline(After(*deadline));
  if (!user_.empty()) context->AddMetadata("atoll-user", user_);
  SendTrace(*context);
  security_->Authorize(*context);
  return context;
}

template <typename Request, typename Reply>
absl::StatusOr<Reply> AdminClient::Call(grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*,
                                                                                const Request&, Reply*),
                                        const Request& request, std::optional<Duration> deadline) {
  ATOLL_RETURN_IF_ERROR(unsecured_);
  ATOLL_RETURN_IF_ERROR(AwaitConnection(*channel_, address_, *security_, connect_within_,
                                        CoordinatorPort::kAdmin, &cancelled_, notice_));
  Reply reply;
  const auto context = Context(deadline);
  const InProgress in_progress(*this, context.get());
  const grpc::Status status = (stub_.get()->*method)(context.get(), request, &reply);
  if (!status.ok()) return FromGrpcStatus(status, address_, CoordinatorPort::kAdmin);
  return reply;
}

template <typename Message, typename Open>
absl::Status AdminClient::Stream(const Open& open, const std::function<bool(const Message&)>& sink) {
  ATOLL_RETURN_IF_ERROR(unsecured_);
  ATOLL_RETURN_IF_ERROR(AwaitConnection(*channel_, address_, *security_, connect_within_,
                                        CoordinatorPort::kAdmin, &cancelled_, notice_));
  const auto context = Context(kAsLongAsItTakes);
  const InProgress in_progress(*this, context.get());
  const auto reader = open(context.get());
  Message message;
  while (reader->Read(&message)) {
    if (sink(message)) continue;
    context->TryCancel();
    reader->Finish().ok();
    return absl::OkStatus();
  }
  const grpc::Status status = reader->Finish();
  return status.ok() ? absl::OkStatus() : FromGrpcStatus(status, address_, CoordinatorPort::kAdmin);
}

absl::StatusOr<v1::GetStatusReply> AdminClient::GetStatus(uint32_t history) {
  v1::GetStatusRequest request;
  request.set_history(history);
  return Call(&v1::Admin::Stub::GetStatus, request, deadline_);
}

absl::StatusOr<v1::ListWorkersReply> AdminClient::ListWorkers(bool all, const std::string& worker) {
  v1::ListWorkersRequest request;
  request.set_all(all);
  request.set_worker(worker);
  return Call(&v1::Admin::Stub::ListWorkers, request, deadline_);
}

absl::StatusOr<v1::GetMetricsReply> AdminClient::GetMetrics() {
  return Call(&v1::Admin::Stub::GetMetrics, v1::GetMetricsRequest(), deadline_);
}

absl::StatusOr<v1::ListConfigsReply> AdminClient::ListConfigs() {
  return Call(&v1::Admin::Stub::ListConfigs, v1::ListConfigsRequest(), deadline_);
}

absl::StatusOr<v1::LauncherStatus> AdminClient::GetLauncher() {
  return Call(&v1::Admin::Stub::GetLauncher, v1::GetLauncherRequest(), deadline_);
}

absl::StatusOr<v1::ControlRunReply> AdminClient::ControlRun(const v1::ControlRunRequest& request) {
  return Call(&v1::Admin::Stub::ControlRun, request, kAsLongAsItTakes);
}

absl::StatusOr<v1::ExtendRunReply> AdminClient::ExtendRun(const v1::ExtendRunRequest& request) {
  return Call(&v1::Admin::Stub::ExtendRun, request, kAsLongAsItTakes);
}

absl::StatusOr<v1::SetConfigReply> AdminClient::SetConfig(const v1::SetConfigRequest& request) {
  return Call(&v1::Admin::Stub::SetConfig, request, kAsLongAsItTakes);
}

absl::StatusOr<v1::ControlWorkerReply> AdminClient::ControlWorker(const v1::ControlWorkerRequest& request) {
  return Call(&v1::Admin::Stub::ControlWorker, request, kAsLongAsItTakes);
}

absl::StatusOr<v1::ScaleWorkersReply> AdminClient::ScaleWorkers(const v1::ScaleWorkersRequest& request) {
  return Call(&v1::Admin::Stub::ScaleWorkers, request, kAsLongAsItTakes);
}

absl::StatusOr<v1::CreateTokenReply> AdminClient::CreateToken(const v1::CreateTokenRequest& request) {
  return Call(&v1::Admin::Stub::CreateToken, request, kAsLongAsItTakes);
}

absl::StatusOr<v1::ListTokensReply> AdminClient::ListTokens() {
  return Call(&v1::Admin::Stub::ListTokens, v1::ListTokensRequest(), deadline_);
}

absl::StatusOr<v1::TokenInfo> AdminClient::RevokeToken(const std::string& id) {
  v1::RevokeTokenRequest request;
  request.set_id(id);
  return Call(&v1::Admin::Stub::RevokeToken, request, kAsLongAsItTakes);
}

absl::StatusOr<v1::CreateCheckpointReply> AdminClient::CreateCheckpoint(const std::string& name) {
  v1::CreateCheckpointRequest request;
  request.set_name(name);
  return Call(&v1::Admin::Stub::CreateCheckpoint, request, kAsLongAsItTakes);
}

absl::StatusOr<v1::ListCheckpointsReply> AdminClient::ListCheckpoints(bool check) {
  v1::ListCheckpointsRequest request;
  request.set_check(check);
  return Call(&v1::Admin::Stub::ListCheckpoints, request, check ? kAsLongAsItTakes : deadline_);
}

absl::StatusOr<v1::RestoreCheckpointReply> AdminClient::RestoreCheckpoint(const std::string& name) {
  v1::RestoreCheckpointRequest request;
  request.set_name(name);
  return Call(&v1::Admin::Stub::RestoreCheckpoint, request, kAsLongAsItTakes);
}

absl::Status AdminClient::DeleteCheckpoint(const std::string& name) {
  v1::DeleteCheckpointRequest request;
  request.set_name(name);
  return Call(&v1::Admin::Stub::DeleteCheckpoint, request, kAsLongAsItTakes).status();
}

absl::StatusOr<StoredParameters> AdminClient::ReadParameters(const ParametersQuery& query,
                                                             const CheckRun& check) {
  ATOLL_RETURN_IF_ERROR(unsecured_);
  ATOLL_RETURN_IF_ERROR(AwaitConnection(*channel_, address_, *security_, connect_within_,
                                        CoordinatorPort::kAdmin, &cancelled_, notice_));
  const auto context = Context(kAsLongAsItTakes);
  const InProgress in_progress(*this, context.get());
  return atl::ReadParameters(*stub_, *context, query, check, [this](const grpc::Status& status) {
    return FromGrpcStatus(status, address_, CoordinatorPort::kAdmin);
  });
}

absl::Status AdminClient::Verify(std::optional<uint64_t> version,
                                 const std::function<bool(const v1::VerifyProgress&)>& sink) {
  v1::VerifyRequest request;
  if (version.has_value()) request.set_version(*version);
  return Stream<v1::VerifyProgress>(
      [&](grpc::ClientContext* context) { return stub_->Verify(context, request); }, sink);
}

absl::StatusOr<v1::ConfirmationPage> AdminClient::ListConfirmations(
    const v1::ListConfirmationsRequest& request) {
  v1::ListConfirmationsRequest next = request;
  v1::ConfirmationPage all;
  for (int pages = 0; pages < kMostPages; ++pages) {
    ATOLL_ASSIGN_OR_RETURN(v1::ConfirmationPage page,
                           Call(&v1::Admin::Stub::ListConfirmations, next, kAsLongAsItTakes));
    all.set_run_id(page.run_id());
    all.mutable_confirmations()->MergeFrom(page.confirmations());
    if (!page.has_next()) return all;
    if (next.has_after() && !IsBehind(page.next(), next.after())) {
      return absl::InternalError(
          "the coordinator's pages of confirmations make no progress: the next page starts at the same place "
          "or earlier");
    }
    if (all.confirmations_size() > kMostConfirmations) break;
    *next.mutable_after() = page.next();
  }
  return FromCoordinator(
      absl::ResourceExhaustedError(absl::StrFormat("the coordinator returned more than %d confirmations or "
                                                   "more than %d pages: ask for one version with --version",
                                                   kMostConfirmations, kMostPages)));
}

absl::Status AdminClient::ExportMetrics(const std::function<bool(const v1::MetricPoint&)>& sink) {
  const v1::ExportMetricsRequest request;
  return Stream<v1::MetricPoint>(
      [&](grpc::ClientContext* context) { return stub_->ExportMetrics(context, request); }, sink);
}

}  // namespace atl

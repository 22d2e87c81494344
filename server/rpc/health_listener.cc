#include "server/rpc/health_listener.h"

#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "atoll/v1/coordinator.grpc.pb.h"
#include "common/bind_address.h"
#include "common/status.h"
#include "grpc/grpc.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/impl/server_builder_option.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "server/rpc/connection_handoff.h"

namespace atl {
namespace {

// A question and its answer are a few dozen bytes.
constexpr int kMaxMessageBytes = 4 << 10;
constexpr int kMaxMetadataBytes = 4 << 10;
constexpr int kMaxStreams = 16;
constexpr size_t kMaxConnections = 64;
constexpr size_t kMaxBufferBytes = size_t{16} << 20;
constexpr int kMaxThreads = 8;
// Idle connections are closed; a probe opens a new one each time.
constexpr int kMaxIdleMs = 30'000;
constexpr int kHandshakeMs = 5'000;
constexpr int kMaxAgeMs = 300'000;
constexpr int kMaxAgeGraceMs = 5'000;

/// Reflection is a plugin of every server that is built after it was asked for once; not of this one.
class NoPlugins final : public grpc::ServerBuilderOption {
 public:
  void UpdateArguments(grpc::ChannelArguments* args) override {}
  void UpdatePlugins(std::vector<std::unique_ptr<grpc::ServerBuilderPlugin>>* plugins) override {
    plugins->clear();
  }
};

void SetArguments(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxStreams);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kMaxIdleMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, kMaxAgeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, kMaxAgeGraceMs);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  grpc::ResourceQuota quota("atoll-health");
  quota.Resize(kMaxBufferBytes);
  quota.SetMaxThreads(kMaxThreads);
  builder.SetResourceQuota(quota);
  builder.SetOption(std::make_unique<NoPlugins>());
}

}  // namespace

absl::Status HealthListener::CheckAddress(const std::string& address) {
  ATOLL_ASSIGN_OR_RETURN(const BindAddress where, ParseBindAddress(address));
  return CheckBindable(where);
}

absl::StatusOr<std::unique_ptr<HealthListener>> HealthListener::Start(const std::string& address) {
  // It says more about why not than the attempt does.
  ATOLL_RETURN_IF_ERROR(CheckAddress(address));
  ATOLL_ASSIGN_OR_RETURN(const BindAddress where, ParseBindAddress(address));
  std::unique_ptr<HealthListener> health(new HealthListener());
  ATOLL_ASSIGN_OR_RETURN(
      health->acceptor_,
      Acceptor::Listen(where, {.limits = {.total = kMaxConnections, .per_address = kMaxConnections},
                               .when_full = WhenFull::kEndOldest}));
  health->address_ = health->acceptor_->address().ToString();
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  SetArguments(builder);
  // Answers whatever is called with UNIMPLEMENTED: gRPC serves nothing, health neither, without a service.
  health->nothing_ = std::make_unique<grpc::CallbackGenericService>();
  builder.RegisterCallbackGenericService(health->nothing_.get());
  health->handoff_ = AddConnectionHandoff(builder, grpc::InsecureServerCredentials());
  health->server_ = builder.BuildAndStart();
  if (health->server_ == nullptr) {
    return absl::UnavailableError(absl::StrFormat("cannot serve on %s", where.ToString()));
  }
  health->SetServing(false);
  health->server_->GetHealthCheckService()->SetServingStatus(kLiveService, true);
  health->acceptor_->Start(HandOffTo(health->handoff_), &health->clock_,
                           CountStreamsOf(health->acceptor_->address().port));
  return health;
}

HealthListener::~HealthListener() {
  acceptor_.reset();
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

void HealthListener::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* const service = server_->GetHealthCheckService();
  service->SetServingStatus("", serving);
  service->SetServingStatus(v1::Coordinator::service_full_name(), serving);
}

}  // namespace atl

#include "client/rpc/stored_reader.h"

#include "absl/strings/str_format.h"
#include "client/parameters/parameters_assembler.h"
#include "client/rpc/call_status.h"
#include "client/rpc/channel.h"
#include "grpcpp/client_context.h"

namespace atl {
namespace {

absl::Status Translate(const grpc::Status& status, const std::string& address,
                       const ChannelSecurity& security) {
  if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    return absl::FailedPreconditionError(
        absl::StrFormat("the server on %s does not know this call: either it is not a coordinator's admin "
                        "port (--admin), or the coordinator is older than this program",
                        address));
  }
  const absl::Status translated = StatusOfCall(status, address);
  // NotFound is a file of this machine (common/exit_codes.h).
  if (absl::IsNotFound(translated)) return absl::FailedPreconditionError(translated.message());
  if (!absl::IsUnavailable(translated) || !status.error_details().empty()) return translated;
  std::string why = security.WhyNoConnection(address, status.error_message(), CoordinatorPort::kAdmin);
  if (why.empty()) why = WithoutGrpcTerms(std::string(translated.message()));
  return absl::UnavailableError(
      absl::StrFormat("no coordinator answers on %s (%s); check --admin", address, why));
}

}  // namespace

absl::StatusOr<StoredParameters> ReadStoredParameters(const std::string& address,
                                                      const std::shared_ptr<const ChannelSecurity>& security,
                                                      const ParametersQuery& query, const CheckRun& check) {
  const auto channel = MakeChannel({.address = address, .security = security});
  const auto stub = v1::Admin::NewStub(channel);
  grpc::ClientContext context;
  security->Authorize(context);
  return ReadParameters(*stub, context, query, check,
                        [&](const grpc::Status& status) { return Translate(status, address, *security); });
}

}  // namespace atl

#include "server/rpc/grpc_status.h"

#include <optional>
#include <string>

#include "common/clock.h"
#include "common/status_detail.h"
#include "protos/wire/status.h"
#include "server/rejection.h"

namespace atl {
namespace {

constexpr Duration kComeBack = Seconds(1);

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const bool comes_back = absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
  const std::optional<StatusDetail> detail = DetailOf(status);
  if (!comes_back || (detail && detail->retry_after)) return StatusToGrpc(status);
  return StatusToGrpc(WithRetryAfter(status, kComeBack));
}

absl::Status Overloaded() {
  return Reject(Rejection{.reason = RejectionReason::kOverBudget, .metadata = {}, .retry_after = kComeBack},
                "the coordinator has too many calls waiting; try again in a second");
}

absl::Status TooManyStreams() {
  return Reject(Rejection{.reason = RejectionReason::kOverBudget, .metadata = {}, .retry_after = kComeBack},
                "the coordinator has too many streams open; try again in a second");
}

absl::Status GoingAway() {
  return Reject(Rejection{.reason = RejectionReason::kShuttingDown, .metadata = {}, .retry_after = kComeBack},
                "the coordinator is shutting down; attach again when it is back");
}

}  // namespace atl

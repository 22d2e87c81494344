#include "server/rpc/grpc_status.h"

#include <optional>
#include <string>

#include "common/clock.h"
#include "common/status_detail.h"
#include "protos/wire/status.h"
#include "server/refusal.h"

namespace atoll {
namespace {

constexpr Duration kComeBack = Seconds(1);

StatusDetail DetailOfRefusal(const Refusal& refusal) {
  return {std::string(RefusalReasonName(refusal.reason)), refusal.metadata, refusal.retry_after};
}

}  // namespace

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const std::optional<Refusal> refusal = RefusalOf(status);
  const bool comes_back = absl::IsUnavailable(status) || absl::IsResourceExhausted(status);
  if (!refusal && !comes_back) return StatusToGrpc(status);
  StatusDetail detail = refusal ? DetailOfRefusal(*refusal) : StatusDetail();
  if (comes_back && !detail.retry_after) detail.retry_after = kComeBack;
  return StatusToGrpc(WithDetail(status, detail));
}

absl::Status Overloaded() {
  return Refuse(Refusal{.reason = RefusalReason::kOverBudget, .metadata = {}, .retry_after = kComeBack},
                "the coordinator has too many calls waiting; try again in a second");
}

absl::Status GoingAway() {
  return Refuse(Refusal{.reason = RefusalReason::kShuttingDown, .metadata = {}, .retry_after = kComeBack},
                "the coordinator is shutting down; attach again when it is back");
}

}  // namespace atoll

#ifndef ATOLL_COMMON_REJECTION_REASON_H_
#define ATOLL_COMMON_REJECTION_REASON_H_

#include <cstdint>
#include <string_view>

namespace atl {

/// Why a coordinator refuses a call, as both sides know it: the reasons of docs/reference/wire_format.md
/// ("Errors"). They travel by name in the detail of an absl::Status (common/status_detail.h). What the
/// coordinator's side adds to one is in server/rejection.h, what a worker does about it in
/// worker/sync/rejection.h.
enum class RejectionReason : uint8_t {
  kNone = 0,  // no reason: the network, a deadline, a fault; or a refusal that only carries a retry delay
  kProtocolMismatch,
  kWrongRun,
  kWrongEpoch,
  kSuperseded,
  kNotAMember,
  kNameTaken,
  kBanned,
  kManifestMismatch,
  kDatasetMismatch,
  kStaleBase,
  kUnknownBase,
  kWrongCodec,
  kWrongSize,
  kWrongFragment,
  kBadChunk,
  kNotFinite,
  kAlreadyPushed,
  kNotSeeded,
  kOverBudget,
  kStorageFull,
  kStorageFailing,  // since 0.2.0; a worker of before goes by its code
  kShuttingDown,    // the last one
};

/// "STALE_BASE"; empty for kNone.
std::string_view RejectionReasonName(RejectionReason reason);
/// kNone when there is no such reason (a newer coordinator may know more).
RejectionReason ParseRejectionReason(std::string_view name);

}  // namespace atl

#endif  // ATOLL_COMMON_REJECTION_REASON_H_

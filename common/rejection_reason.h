#ifndef ATOLL_COMMON_REJECTION_REASON_H_
#define ATOLL_COMMON_REJECTION_REASON_H_

#include <cstdint>
#include <string_view>

namespace atl {

/// Why a coordinator rejects a call: the reasons of docs/reference/wire_format.md ("Errors"), shared by
/// coordinator and worker. They are sent by name in the detail of an absl::Status (common/status_detail.h).
/// server/rejection.h adds the coordinator's details; client/sync/rejection.h has the worker's reaction.
enum class RejectionReason : uint8_t {
  kNone = 0,  // no reason: the network, a deadline, a fault, or a rejection with only a retry delay
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
  kStorageFailing,  // since 0.2.0; an older worker uses the status code
  kShuttingDown,    // the last one
};

/// "STALE_BASE"; empty for kNone.
std::string_view RejectionReasonName(RejectionReason reason);
/// kNone for an unknown reason (a newer coordinator may have more).
RejectionReason ParseRejectionReason(std::string_view name);

}  // namespace atl

#endif  // ATOLL_COMMON_REJECTION_REASON_H_

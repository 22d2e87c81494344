#include "client/engine/status_code.h"

#include "client/sync/rejection.h"

namespace atl {

atl_code CodeForCaller(const absl::Status& status) {
  const RejectionReason reason = RejectionReasonOf(status);
  if (reason == RejectionReason::kNameTaken || reason == RejectionReason::kSuperseded)
    return ATL_ALREADY_EXISTS;
  if (reason == RejectionReason::kManifestMismatch) return ATL_INVALID_ARGUMENT;
  if (absl::IsInternal(status)) return ATL_UNKNOWN;
  return static_cast<atl_code>(status.code());
}

}  // namespace atl

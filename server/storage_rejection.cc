#include "server/storage_rejection.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/errno.h"
#include "server/rejection.h"

namespace atl {
namespace {

constexpr Duration kDiskRetry = Seconds(2);
constexpr Duration kBusyRetry = Seconds(0.5);

/// Not a rule of the store, but its files: an errno, or a code that only RocksDB's failures have.
bool IsTrouble(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kUnknown:
      return true;
    default:
      return ErrnoOf(status).has_value();
  }
}

}  // namespace

absl::Status ToRejection(const absl::Status& storage_status) {
  if (absl::IsResourceExhausted(storage_status)) {
    return Reject(
        Rejection{.reason = RejectionReason::kStorageFull, .metadata = {}, .retry_after = kDiskRetry},
        std::string(storage_status.message()));
  }
  if (absl::IsAborted(storage_status)) return WithRetryAfter(storage_status, kBusyRetry);
  if (IsTrouble(storage_status)) {
    return Reject(
        Rejection{.reason = RejectionReason::kStorageFailing, .metadata = {}, .retry_after = kDiskRetry},
        absl::StrCat("the coordinator cannot use its data directory: ",
                     std::string(storage_status.message())));
  }
  return storage_status;
}

bool OfStorage(RejectionReason reason) {
  return reason == RejectionReason::kStorageFull || reason == RejectionReason::kStorageFailing;
}

}  // namespace atl

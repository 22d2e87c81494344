#include "server/storage_refusal.h"

#include "server/refusal.h"

namespace atoll {
namespace {

constexpr Duration kDiskRetry = Seconds(2);
constexpr Duration kBusyRetry = Seconds(0.5);

}  // namespace

absl::Status ToRefusal(const absl::Status& storage_status) {
  if (absl::IsResourceExhausted(storage_status)) {
    return Refuse(Refusal{.reason = RefusalReason::kStorageFull, .metadata = {}, .retry_after = kDiskRetry},
                  std::string(storage_status.message()));
  }
  if (absl::IsAborted(storage_status)) return WithRetryAfter(storage_status, kBusyRetry);
  return storage_status;
}

}  // namespace atoll

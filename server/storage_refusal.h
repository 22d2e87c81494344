#ifndef ATOLL_SERVER_STORAGE_REFUSAL_H_
#define ATOLL_SERVER_STORAGE_REFUSAL_H_

#include "absl/status/status.h"

namespace atoll {

/// What a client is told of a failure of the store: a full disk is STORAGE_FULL with a retry delay, an upload
/// that is still held by an earlier stream may be retried, anything else stays what it is.
absl::Status ToRefusal(const absl::Status& storage_status);

}  // namespace atoll

#endif  // ATOLL_SERVER_STORAGE_REFUSAL_H_

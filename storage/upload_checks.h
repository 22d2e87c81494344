#ifndef ATOLL_STORAGE_UPLOAD_CHECKS_H_
#define ATOLL_STORAGE_UPLOAD_CHECKS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/contribution.h"

// Checks that every Upload makes, with the same messages.

namespace atl {

/// InvalidArgument when `incoming` bytes more would go beyond the announced size.
absl::Status CheckAppend(const ContributionKey& key, uint64_t payload_bytes, uint64_t received,
                         uint64_t incoming);
/// FailedPrecondition when bytes are missing.
absl::Status CheckComplete(const ContributionKey& key, uint64_t payload_bytes, uint64_t received);
/// InvalidArgument when the contribution does not describe this upload.
absl::Status CheckDescribes(const ContributionKey& key, uint64_t payload_bytes,
                            const Contribution& contribution);
/// FailedPrecondition: the upload was accepted or discarded and is over.
absl::Status UploadIsOver(const ContributionKey& key);
/// Aborted: another upload of this key is alive.
absl::Status UploadIsBusy(const ContributionKey& key);

}  // namespace atl

#endif  // ATOLL_STORAGE_UPLOAD_CHECKS_H_

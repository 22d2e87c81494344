#include "storage/upload_checks.h"

#include "absl/strings/str_format.h"
#include "storage/describe.h"

namespace atl {

absl::Status CheckAppend(const ContributionKey& key, uint64_t payload_bytes, uint64_t received,
                         uint64_t incoming) {
  if (incoming <= payload_bytes - received) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: %d more bytes after the %d of %d received exceed its size", Describe(key),
                      incoming, received, payload_bytes));
}

absl::Status CheckComplete(const ContributionKey& key, uint64_t payload_bytes, uint64_t received) {
  if (received == payload_bytes) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s: %d of %d bytes received", Describe(key), received, payload_bytes));
}

absl::Status CheckDescribes(const ContributionKey& key, uint64_t payload_bytes,
                            const Contribution& contribution) {
  if (contribution.key == key && contribution.payload_bytes == payload_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s with %d bytes does not describe the upload, %s with %d", Describe(contribution.key),
                      contribution.payload_bytes, Describe(key), payload_bytes));
}

absl::Status UploadIsOver(const ContributionKey& key) {
  return absl::FailedPreconditionError(absl::StrFormat("%s: the upload has ended", Describe(key)));
}

absl::Status UploadIsBusy(const ContributionKey& key) {
  return absl::AbortedError(
      absl::StrFormat("%s: another upload of it is in progress; retry when it has ended", Describe(key)));
}

}  // namespace atl

#include "storage/rocksdb/rocksdb_status.h"

#include <string>

#include "absl/strings/str_format.h"

namespace atoll {
namespace {

absl::StatusCode CodeOf(const rocksdb::Status& status) {
  // A background error keeps its text on the way up, but not always its subcode.
  if (status.IsNoSpace() || status.ToString().find("No space left") != std::string::npos) {
    return absl::StatusCode::kResourceExhausted;
  }
  if (status.IsCorruption()) return absl::StatusCode::kDataLoss;
  if (status.IsNotFound() || status.IsPathNotFound()) return absl::StatusCode::kNotFound;
  if (status.IsMemoryLimit()) return absl::StatusCode::kResourceExhausted;
  if (status.IsIOError() || status.IsBusy() || status.IsTryAgain() || status.IsShutdownInProgress()) {
    return absl::StatusCode::kUnavailable;
  }
  return absl::StatusCode::kInternal;
}

}  // namespace

absl::Status FromRocksDb(const rocksdb::Status& status, std::string_view doing) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(CodeOf(status), absl::StrFormat("%s: %s", std::string(doing), status.ToString()));
}

}  // namespace atoll

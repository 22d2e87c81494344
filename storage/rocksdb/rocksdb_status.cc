#include "storage/rocksdb/rocksdb_status.h"

#include <string>

#include "absl/strings/str_format.h"
#include "common/file.h"

namespace atl {
namespace {

/// EFBIG: the process has a limit of file sizes.
bool IsTooLarge(const std::string& text) { return text.find("File too large") != std::string::npos; }

absl::StatusCode CodeOf(const rocksdb::Status& status) {
  // A background error keeps its text on the way up, but not always its subcode.
  const std::string text = status.ToString();
  if (status.IsNoSpace() || text.find("No space left") != std::string::npos || IsTooLarge(text)) {
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
  const std::string text = status.ToString();
  const char* const advice = IsTooLarge(text) ? " (raise the limit of file sizes, ulimit -f)" : "";
  return absl::Status(CodeOf(status), absl::StrFormat("%s: %s%s", std::string(doing), text, advice));
}

absl::Status FromOpening(const rocksdb::Status& status, const std::string& path, DbAccess access) {
  const absl::Status converted = FromRocksDb(status, absl::StrFormat("open %s", path));
  // A database that is being made has no files yet, and a full disk is no damage.
  if (status.ok() || access == DbAccess::kCreate || absl::IsResourceExhausted(converted)) return converted;
  const std::string current = JoinPath(path, "CURRENT");
  if (!FileExists(current)) {
    return absl::DataLossError(absl::StrFormat("open %s: the file %s is missing", path, current));
  }
  // RocksDB calls a database without its files an I/O error, a wrong argument or not found.
  const bool incomplete = status.IsNotFound() || status.IsPathNotFound() || status.IsInvalidArgument() ||
                          converted.message().find("No such file") != absl::string_view::npos;
  return incomplete ? absl::DataLossError(converted.message()) : converted;
}

}  // namespace atl

#include "storage/rocksdb/folder_bytes.h"

#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_format.h"

namespace atl {

absl::StatusOr<uint64_t> FolderBytes(const std::string& folder) {
  uint64_t bytes = 0;
  std::set<std::pair<dev_t, ino_t>> counted;
  std::error_code error;
  // Files come and go meanwhile: a missing file counts nothing.
  for (std::filesystem::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    struct stat info;
    if (::lstat(it->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (info.st_nlink > 1 && !counted.emplace(info.st_dev, info.st_ino).second) continue;
    bytes += static_cast<uint64_t>(info.st_size);
  }
  if (!error) return bytes;
  return absl::UnavailableError(absl::StrFormat("measure %s: %s", folder, error.message()));
}

}  // namespace atl

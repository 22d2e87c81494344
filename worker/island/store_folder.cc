#include "worker/island/store_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/errno.h"

namespace atl {
namespace {

constexpr char kPrefix[] = "atoll-ranks-";
constexpr time_t kYoung = 60;  // seconds: its maker may be about to lock it

/// Of a folder, not of what a link points to.
FileDescriptor OpenFolder(const std::string& path) {
  return FileDescriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool IsLeftOver(const FileDescriptor& folder) {
  struct stat info {};
  return folder.valid() && ::fstat(folder.get(), &info) == 0 && info.st_uid == ::geteuid() &&
         info.st_mtime + kYoung < ::time(nullptr) && ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0;
}

/// A killed supervisor removes nothing.
void RemoveLeftOvers(const std::filesystem::path& temporary) {
  std::error_code ignored;
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(temporary, ignored)) {
    if (absl::StartsWith(entry.path().filename().string(), kPrefix)) found.push_back(entry.path().string());
  }
  for (const std::string& path : found) {
    const FileDescriptor folder = OpenFolder(path);
    if (IsLeftOver(folder)) std::filesystem::remove_all(path, ignored);
  }
}

}  // namespace

StoreFolder::~StoreFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

absl::Status StoreFolder::Make() {
  const char* given = std::getenv("TMPDIR");
  const std::filesystem::path temporary = given == nullptr || *given == '\0' ? "/tmp" : given;
  std::string name = (temporary / absl::StrCat(kPrefix, "XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr) {
    return ErrnoToStatus(errno, absl::StrCat("making the folder ", name,
                                             ", where ranks find each other (TMPDIR names another place)"));
  }
  path_ = name;
  lock_ = OpenFolder(path_);
  if (!lock_.valid() || ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("locking the folder ", path_, ", where ranks find each other"));
  }
  RemoveLeftOvers(temporary);
  // c10d's FileStore waits 300 s for a file that nobody has made, whatever time its caller allows: when
  // rank 0 is frozen in its first moments.
  std::ofstream store(file());
  if (store.is_open()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot make ", file(), ", where ranks find each other"));
}

}  // namespace atl

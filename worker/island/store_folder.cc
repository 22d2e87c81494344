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
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/errno.h"

namespace atl {
namespace {

constexpr char kPrefix[] = "atoll-ranks-";
constexpr size_t kLetters = 6;  // that mkdtemp chooses
constexpr char kFile[] = "store";
constexpr off_t kReserved = 32768;  // bytes of the file: more than the addresses of 16 ranks take
constexpr time_t kYoung = 60;       // seconds: its maker may be about to lock it

/// Of a folder, not of what a link points to.
FileDescriptor OpenFolder(const std::string& path) {
  return FileDescriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool IsLeftOver(const FileDescriptor& folder) {
  struct stat info {};
  return folder.valid() && ::fstat(folder.get(), &info) == 0 && info.st_uid == ::geteuid() &&
         info.st_mtime + kYoung < ::time(nullptr) && ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0;
}

bool IsOurName(const std::string& name) {
  return absl::StartsWith(name, kPrefix) && name.size() == sizeof(kPrefix) - 1 + kLetters;
}

/// What a supervisor makes there. A folder of a user's may have a name like ours.
bool HoldsOnlyAStore(const std::filesystem::path& folder) {
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    if (entry.path().filename() != kFile || !entry.is_regular_file(failed)) return false;
  }
  return !failed;
}

/// Removes no other file, also if one comes meanwhile: then the folder stays.
void RemoveFolder(const std::filesystem::path& folder) {
  ::unlink((folder / kFile).c_str());
  ::rmdir(folder.c_str());
}

/// A killed supervisor removes nothing.
void RemoveLeftOvers(const std::filesystem::path& temporary) {
  std::error_code ignored;
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(temporary, ignored)) {
    if (IsOurName(entry.path().filename().string())) found.push_back(entry.path());
  }
  for (const std::filesystem::path& path : found) {
    const FileDescriptor folder = OpenFolder(path.string());
    if (IsLeftOver(folder) && HoldsOnlyAStore(path)) RemoveFolder(path);
  }
}

}  // namespace

StoreFolder::~StoreFolder() {
  if (!path_.empty()) RemoveFolder(path_);
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
  const FileDescriptor store(::open(file().c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  // A disk that is full is noticed here, where it is named, and not by FileStore, in the middle of an entry.
  if (store.valid() && (::fallocate(store.get(), FALLOC_FL_KEEP_SIZE, 0, kReserved) == 0 ||
                        errno == EOPNOTSUPP || errno == ENOSYS)) {
    return absl::OkStatus();
  }
  return ErrnoToStatus(
      errno, absl::StrCat("making ", file(), ", where ranks find each other (TMPDIR names another place)"));
}

}  // namespace atl

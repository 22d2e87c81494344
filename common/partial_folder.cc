#include "common/partial_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/durable_file.h"
#include "common/errno.h"
#include "common/file.h"
#include "common/output_target.h"
#include "common/status.h"

namespace atl {
namespace {

// In every partial folder: a folder of this name that somebody else made is never emptied.
constexpr char kMark[] = ".atoll-partial";

/// The folder that is to be made: no slash at its end, no link.
absl::StatusOr<std::string> FolderTarget(const std::string& path) {
  std::string name = path;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  ATOLL_ASSIGN_OR_RETURN(const OutputTarget target, ResolveOutput(name));
  struct stat info {};
  if (target.stream || (::stat(target.path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode))) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a folder; give the name of a new one"));
  }
  if (FileExists(target.path)) {
    ATOLL_ASSIGN_OR_RETURN(const auto names, ListDir(target.path));
    if (!names.empty()) {
      return absl::FailedPreconditionError(absl::StrCat(
          path, " is a folder with files, which are not replaced; give the name of a new one, or remove it"));
    }
  }
  return target.path;
}

bool StillNamed(int fd, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(fd, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

absl::StatusOr<FileDescriptor> LockFolder(const std::string& path, const std::string& partial) {
  while (true) {
    if (::mkdir(partial.c_str(), 0777) != 0 && errno != EEXIST) {
      return ErrnoToStatus(errno, absl::StrCat("make folder ", partial));
    }
    FileDescriptor fd(::open(partial.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    if (!fd.valid() && errno == ENOENT) continue;  // its writer has just renamed or removed it
    if (!fd.valid()) return ErrnoToStatus(errno, absl::StrCat("open folder ", partial));
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return ErrnoToStatus(errno, absl::StrCat("lock ", partial));
      return absl::FailedPreconditionError(
          absl::StrCat("another process is writing ", path, "; wait for it, or give another name"));
    }
    if (StillNamed(fd.get(), partial)) return fd;
  }
}

/// Marks the folder as ours. Removes what a killed process left in it, unless it is to be continued.
absl::Status TakeLeftOver(const std::string& partial, PartialFolder::LeftOver left_over) {
  ATOLL_ASSIGN_OR_RETURN(const auto names, ListDir(partial));
  if (!names.empty() && !FileExists(JoinPath(partial, kMark))) {
    return absl::FailedPreconditionError(
        absl::StrCat(partial,
                     " is in the way, and does not look like what an interrupted command left; move it, or "
                     "give another name"));
  }
  // The mark goes last, so that a kill in between leaves a folder that is still known.
  for (const std::string& name : names) {
    if (name != kMark && left_over == PartialFolder::LeftOver::kRemove)
      ATOLL_RETURN_IF_ERROR(RemoveAll(JoinPath(partial, name)));
  }
  ATOLL_ASSIGN_OR_RETURN(DurableFile mark,
                         DurableFile::Open(JoinPath(partial, kMark), OpenMode::kCreateOrOpen));
  return mark.Close();
}

}  // namespace

PartialFolder::PartialFolder(std::string target, std::string partial, FileDescriptor fd)
    : target_(std::move(target)), partial_(std::move(partial)), fd_(std::move(fd)) {}

PartialFolder::~PartialFolder() {
  if (!published_ && !kept_) RemoveAll(partial_).IgnoreError();
}

absl::StatusOr<std::unique_ptr<PartialFolder>> PartialFolder::Create(const std::string& path,
                                                                     LeftOver left_over) {
  ATOLL_ASSIGN_OR_RETURN(const std::string target, FolderTarget(path));
  std::string partial = target + ".partial";
  ATOLL_ASSIGN_OR_RETURN(FileDescriptor lock, LockFolder(path, partial));
  ATOLL_RETURN_IF_ERROR(TakeLeftOver(partial, left_over));
  return std::unique_ptr<PartialFolder>(new PartialFolder(target, std::move(partial), std::move(lock)));
}

absl::Status PartialFolder::Publish() {
  ATOLL_RETURN_IF_ERROR(RemoveFile(JoinPath(partial_, kMark)));
  ATOLL_RETURN_IF_ERROR(FsyncDir(partial_));
  ATOLL_RETURN_IF_ERROR(RenameFile(partial_, target_));
  published_ = true;
  const std::filesystem::path parent = std::filesystem::path(target_).parent_path();
  return FsyncDir(parent.empty() ? "." : parent.string());
}

}  // namespace atl

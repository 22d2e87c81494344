#include "common/partial_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/durable_file.h"
#include "common/errno.h"
#include "common/file.h"
#include "common/status.h"

namespace atl {
namespace {

/// The path to write: the target, if `path` is a link. The replaced object must be a file.
absl::StatusOr<std::string> Destination(const std::string& path) {
  std::error_code error;
  std::string target = path;
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(path, error))) {
    const auto followed = std::filesystem::weakly_canonical(path, error);
    if (!error) target = followed.string();
  }
  if (std::filesystem::is_directory(target, error)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is a folder; give a file name"));
  }
  ATOLL_RETURN_IF_ERROR(CheckReplaceable(target));
  return target;
}

/// Whether the name still refers to the opened file: a writer that just ended may have renamed or removed it.
bool IsNamed(int fd, const std::string& path) {
  struct stat opened {};
  struct stat named {};
  return ::fstat(fd, &opened) == 0 && ::stat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

/// Opens and locks an empty file of this name that no other process writes.
absl::StatusOr<FileDescriptor> LockEmptied(const std::string& path, const std::string& partial) {
  while (true) {
    FileDescriptor fd(::open(partial.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (fd.get() < 0) return ErrnoToStatus(errno, absl::StrCat("open ", partial));
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return ErrnoToStatus(errno, absl::StrCat("lock ", partial));
      return absl::FailedPreconditionError(
          absl::StrCat("another process is writing ", path, "; wait for it, or give another file name"));
    }
    if (!IsNamed(fd.get(), partial)) continue;
    if (::ftruncate(fd.get(), 0) != 0) return ErrnoToStatus(errno, absl::StrCat("truncate ", partial));
    return fd;
  }
}

}  // namespace

PartialFile::PartialFile(std::string path, std::string partial, FileDescriptor lock)
    : path_(std::move(path)), partial_(std::move(partial)), lock_(std::move(lock)) {}

PartialFile::~PartialFile() {
  if (!published_) RemoveFile(partial_).IgnoreError();
}

absl::StatusOr<std::unique_ptr<PartialFile>> PartialFile::Create(const std::string& path) {
  ATOLL_ASSIGN_OR_RETURN(const std::string destination, Destination(path));
  return Create(destination, destination + ".partial");
}

absl::StatusOr<std::unique_ptr<PartialFile>> PartialFile::Create(const std::string& path,
                                                                 const std::string& partial) {
  ATOLL_ASSIGN_OR_RETURN(std::string destination, Destination(path));
  ATOLL_ASSIGN_OR_RETURN(FileDescriptor lock, LockEmptied(path, partial));
  return std::unique_ptr<PartialFile>(new PartialFile(std::move(destination), partial, std::move(lock)));
}

absl::Status PartialFile::Publish() {
  ATOLL_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Open(partial_, OpenMode::kOpenExisting));
  ATOLL_RETURN_IF_ERROR(file.Sync());
  ATOLL_RETURN_IF_ERROR(file.Close());
  ATOLL_RETURN_IF_ERROR(RenameFile(partial_, path_));
  published_ = true;
  return absl::OkStatus();
}

}  // namespace atl

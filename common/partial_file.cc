#include "common/partial_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/durable_file.h"
#include "common/errno.h"
#include "common/file.h"
#include "common/mapped_file.h"
#include "common/status.h"

namespace atl {
namespace {

/// Renaming needs only a writable folder, so it would replace a file whose owner made it read-only. Looks at
/// the mode, because root may write every file.
absl::Status CheckWritable(const std::string& path) {
  struct stat info {};
  constexpr mode_t kAnyWrite = S_IWUSR | S_IWGRP | S_IWOTH;
  if (::stat(path.c_str(), &info) != 0 || (info.st_mode & kAnyWrite) != 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat(
      "%s is read-only (mode %04o); give another file name, or allow writing with 'chmod u+w'", path,
      info.st_mode & 07777));
}

/// As ResolveOutput; a folder is an error, because it cannot be replaced.
absl::StatusOr<OutputTarget> FileTarget(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is a folder; give a file name"));
  }
  ATOLL_ASSIGN_OR_RETURN(OutputTarget target, ResolveOutput(path));
  if (!target.stream) ATOLL_RETURN_IF_ERROR(CheckWritable(target.path));
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

PartialFile::PartialFile(OutputTarget target, std::string partial, FileDescriptor fd)
    : target_(std::move(target)), partial_(std::move(partial)), fd_(std::move(fd)) {}

PartialFile::~PartialFile() {
  if (!published_ && !target_.stream) RemoveFile(partial_).IgnoreError();
}

absl::StatusOr<std::unique_ptr<PartialFile>> PartialFile::Create(const std::string& path) {
  ATOLL_ASSIGN_OR_RETURN(OutputTarget target, FileTarget(path));
  if (!target.stream) return Create(target.path, target.path + ".partial");
  FileDescriptor memory(::memfd_create("atoll-output", MFD_CLOEXEC));
  if (!memory.valid()) return ErrnoToStatus(errno, absl::StrCat("make room for the contents of ", path));
  std::string name = absl::StrCat("/proc/self/fd/", memory.get());
  return std::unique_ptr<PartialFile>(new PartialFile(std::move(target), std::move(name), std::move(memory)));
}

absl::StatusOr<std::unique_ptr<PartialFile>> PartialFile::Create(const std::string& path,
                                                                 const std::string& partial) {
  ATOLL_ASSIGN_OR_RETURN(OutputTarget target, FileTarget(path));
  if (target.stream) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is a link to a pipe or a device; remove it"));
  }
  ATOLL_ASSIGN_OR_RETURN(FileDescriptor lock, LockEmptied(path, partial));
  return std::unique_ptr<PartialFile>(new PartialFile(std::move(target), partial, std::move(lock)));
}

absl::Status PartialFile::Publish() {
  if (target_.stream) {
    ATOLL_ASSIGN_OR_RETURN(const MappedFile contents, MappedFile::Open(partial_));
    const auto* const begin = reinterpret_cast<const char*>(contents.bytes().data());
    return WriteToStream(target_, std::string_view(begin, contents.size()));
  }
  ATOLL_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Open(partial_, OpenMode::kOpenExisting));
  ATOLL_RETURN_IF_ERROR(file.Sync());
  ATOLL_RETURN_IF_ERROR(file.Close());
  ATOLL_RETURN_IF_ERROR(RenameFile(partial_, target_.path));
  published_ = true;
  return absl::OkStatus();
}

}  // namespace atl

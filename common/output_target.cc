#include "common/output_target.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/errno.h"
#include "common/file_descriptor.h"
#include "common/status.h"

namespace atl {
namespace {

constexpr int kMostLinks = 40;  // as in the kernel

bool IsReplaceable(mode_t mode) { return S_ISREG(mode) || S_ISDIR(mode); }

absl::Status NotReplaceable(const std::string& path) {
  return absl::FailedPreconditionError(absl::StrCat(path,
                                                    " is not a regular file but a device, a pipe or a "
                                                    "socket, which must not be replaced; give a file name"));
}

/// Whether this folder lists the descriptors of this process.
bool IsOwnDescriptors(const std::string& folder) {
  const std::string own = absl::StrCat("/proc/", ::getpid());
  return absl::StartsWith(folder, absl::StrCat(own, "/")) && absl::EndsWith(folder, "/fd");
}

/// The name at the end of a chain of links. It need not exist.
absl::StatusOr<std::string> EndOfLinks(const std::string& path) {
  std::filesystem::path name = path;
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code error;
    if (!std::filesystem::is_symlink(std::filesystem::symlink_status(name, error))) return name.string();
    const std::filesystem::path target = std::filesystem::read_symlink(name, error);
    if (error) return ErrnoToStatus(error.value(), absl::StrCat("read the link ", name.string()));
    name = name.parent_path() / target;  // an absolute target replaces the folder
  }
  return ErrnoToStatus(ELOOP, absl::StrCat("follow the link ", path));
}

/// The descriptor of this process that a chain of links passes through; nullopt: none. The last link of the
/// kernel's folder looks like one to a file, but leads to the open descriptor.
std::optional<int> OwnDescriptor(const std::string& path) {
  std::filesystem::path name = path;
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code error;
    if (!std::filesystem::is_symlink(std::filesystem::symlink_status(name, error))) return std::nullopt;
    const std::filesystem::path folder = std::filesystem::weakly_canonical(
        name.has_parent_path() ? name.parent_path() : std::filesystem::path("."), error);
    int number = 0;
    if (!error && IsOwnDescriptors(folder.string()) && absl::SimpleAtoi(name.filename().string(), &number)) {
      return number;
    }
    const std::filesystem::path target = std::filesystem::read_symlink(name, error);
    if (error) return std::nullopt;
    name = name.parent_path() / target;
  }
  return std::nullopt;
}

absl::StatusOr<OutputTarget> ToDescriptor(const std::string& path, int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags < 0) return ErrnoToStatus(errno, absl::StrCat("open ", path));
  if ((flags & O_ACCMODE) == O_RDONLY) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is open for reading only; give a file name, or open it for writing"));
  }
  return OutputTarget{.path = path, .stream = true, .descriptor = descriptor};
}

absl::StatusOr<OutputTarget> ResolveDangling(const std::string& path) {
  absl::StatusOr<std::string> end = EndOfLinks(path);
  if (!end.ok()) return end.status();
  const std::filesystem::path folder = std::filesystem::path(*end).parent_path();
  std::error_code error;
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return OutputTarget{*std::move(end)};
  return absl::NotFoundError(absl::StrCat(path, " is a link to ", *end,
                                          ", whose folder does not exist; create the folder, or give another "
                                          "file name"));
}

absl::StatusOr<FileDescriptor> OpenStream(const OutputTarget& target) {
  if (target.descriptor >= 0) {
    // Its flags are shared with other processes, such as the shell, and must stay.
    FileDescriptor same(::fcntl(target.descriptor, F_DUPFD_CLOEXEC, 0));
    if (!same.valid()) return ErrnoToStatus(errno, absl::StrCat("open ", target.path));
    return same;
  }
  // O_NONBLOCK for the open alone: without a reader, it would wait for one.
  FileDescriptor fd(::open(target.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.valid() && errno == ENXIO) {
    return absl::FailedPreconditionError(
        absl::StrCat("write ", target.path, ": nobody reads from this pipe"));
  }
  if (!fd.valid()) return ErrnoToStatus(errno, absl::StrCat("open ", target.path));
  if (::fcntl(fd.get(), F_SETFL, 0) != 0) return ErrnoToStatus(errno, absl::StrCat("open ", target.path));
  return fd;
}

}  // namespace

absl::StatusOr<OutputTarget> ResolveOutput(const std::string& path) {
  struct stat named {};
  // Other errors are those of opening the file.
  if (::lstat(path.c_str(), &named) != 0) return OutputTarget{path};
  if (!S_ISLNK(named.st_mode)) {
    if (IsReplaceable(named.st_mode)) return OutputTarget{path};
    return NotReplaceable(path);
  }
  if (const auto descriptor = OwnDescriptor(path)) return ToDescriptor(path, *descriptor);
  struct stat target {};
  if (::stat(path.c_str(), &target) != 0) {
    if (errno == ENOENT) return ResolveDangling(path);
    return ErrnoToStatus(errno, absl::StrCat("follow the link ", path));
  }
  if (S_ISFIFO(target.st_mode) || S_ISCHR(target.st_mode)) return OutputTarget{path, /*stream=*/true};
  if (!IsReplaceable(target.st_mode)) return NotReplaceable(path);
  absl::StatusOr<std::string> end = EndOfLinks(path);
  if (!end.ok()) return end.status();
  struct stat found {};
  if (::stat(end->c_str(), &found) == 0 && found.st_dev == target.st_dev && found.st_ino == target.st_ino) {
    return OutputTarget{*std::move(end)};
  }
  return absl::FailedPreconditionError(
      absl::StrCat(path, " leads to an open file that has no name any more; give a file name"));
}

bool IsStream(const std::string& path) {
  const absl::StatusOr<OutputTarget> target = ResolveOutput(path);
  return target.ok() && target->stream;
}

absl::Status WriteToStream(const OutputTarget& target, std::string_view contents) {
  ATOLL_ASSIGN_OR_RETURN(const FileDescriptor fd, OpenStream(target));
  while (!contents.empty()) {
    const ssize_t n = ::write(fd.get(), contents.data(), contents.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      pollfd wait{.fd = fd.get(), .events = POLLOUT, .revents = 0};
      ::poll(&wait, 1, /*timeout=*/-1);
      continue;
    }
    if (n < 0) return ErrnoToStatus(errno, absl::StrCat("write ", target.path));
    contents.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

}  // namespace atl

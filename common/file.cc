#include "common/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/durable_file.h"
#include "common/errno.h"
#include "common/file_descriptor.h"
#include "common/input_file.h"
#include "common/output_target.h"
#include "common/status.h"

namespace atl {
namespace {

std::string ParentOf(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// One mkdir. Returns whether the folder is new.
absl::StatusOr<bool> MakeDir(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0) return true;
  const int error = errno;
  struct stat info;
  if (error == EEXIST && ::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return false;
    return absl::FailedPreconditionError(
        absl::StrCat("create folder ", path, ": a file of that name exists; move it away"));
  }
  return ErrnoToStatus(error, absl::StrCat("create folder ", path));
}

absl::Status WriteAndSync(const std::string& path, std::string_view contents, unsigned mode) {
  ATOLL_ASSIGN_OR_RETURN(DurableFile file, DurableFile::Open(path, OpenMode::kTruncate));
  if (::chmod(path.c_str(), mode) != 0) return ErrnoToStatus(errno, absl::StrCat("chmod ", path));
  ATOLL_RETURN_IF_ERROR(file.WriteAt(0, std::as_bytes(std::span(contents.data(), contents.size()))));
  ATOLL_RETURN_IF_ERROR(file.Sync());
  return file.Close();
}

absl::Status NotAFile(const std::string& path, const std::string& why) {
  return absl::FailedPreconditionError(
      absl::StrCat("read ", path, ": is a pipe (FIFO), not a file, and ", why));
}

/// Waits until there is data or the end of the pipe.
absl::Status AwaitPipe(const FileDescriptor& fd, const std::string& path,
                       std::chrono::steady_clock::time_point deadline) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd wait{.fd = fd.get(), .events = POLLIN, .revents = 0};
    const int ready = left.count() > 0 ? ::poll(&wait, 1, static_cast<int>(left.count())) : 0;
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return ErrnoToStatus(errno, absl::StrCat("read ", path));
    if (ready == 0) {
      return NotAFile(path, absl::StrCat("its writer did not end within ", ToSeconds(kPipePatience), " s"));
    }
  }
}

}  // namespace

std::string JoinPath(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty() && path.back() != '/') path.push_back('/');
  path.append(name);
  return path;
}

absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes) {
  ATOLL_ASSIGN_OR_RETURN(const FileDescriptor fd, OpenInput(path, InputKind::kFileOrPipe));
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return ErrnoToStatus(errno, absl::StrCat("stat ", path));
  const bool pipe = S_ISFIFO(info.st_mode);
  const auto deadline = std::chrono::steady_clock::now() + kPipePatience;
  std::string contents;
  std::string buffer(size_t{1} << 16, '\0');
  while (true) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN && pipe) {
      ATOLL_RETURN_IF_ERROR(AwaitPipe(fd, path, deadline));
      continue;
    }
    if (n < 0) return ErrnoToStatus(errno, absl::StrCat("read ", path));
    if (n == 0 && pipe && contents.empty()) return NotAFile(path, "nobody writes to it");
    if (n == 0) return contents;
    if (contents.size() + static_cast<size_t>(n) > max_bytes) {
      return absl::FailedPreconditionError(
          absl::StrCat("read ", path, ": larger than the limit of ", max_bytes, " bytes"));
    }
    contents.append(buffer, 0, static_cast<size_t>(n));
  }
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view contents, unsigned mode) {
  ATOLL_ASSIGN_OR_RETURN(const OutputTarget target, ResolveOutput(path));
  if (target.stream) return WriteToStream(target, contents);
  const std::string temporary = absl::StrCat(target.path, ".tmp.", ::getpid());
  absl::Status status = WriteAndSync(temporary, contents, mode);
  if (status.ok()) status = RenameFile(temporary, target.path);
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  return FsyncDir(ParentOf(target.path));
}

absl::Status FsyncDir(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return ErrnoToStatus(errno, absl::StrCat("open folder ", path));
  if (::fsync(fd.get()) != 0) return ErrnoToStatus(errno, absl::StrCat("fsync folder ", path));
  return absl::OkStatus();
}

absl::Status CreateDirs(const std::string& path) {
  std::filesystem::path prefix;
  for (const auto& part : std::filesystem::path(path)) {
    prefix /= part;
    if (part.empty() || part == "/") continue;
    ATOLL_ASSIGN_OR_RETURN(const bool created, MakeDir(prefix.string()));
    if (created) ATOLL_RETURN_IF_ERROR(FsyncDir(ParentOf(prefix.string())));
  }
  return absl::OkStatus();
}

bool FileExists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

absl::StatusOr<uint64_t> FileSize(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return ErrnoToStatus(errno, absl::StrCat("stat ", path));
  return static_cast<uint64_t>(info.st_size);
}

absl::StatusOr<std::vector<std::string>> ListDir(const std::string& path) {
  std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), &::closedir);
  if (folder == nullptr) return ErrnoToStatus(errno, absl::StrCat("open folder ", path));
  std::vector<std::string> names;
  while (true) {
    errno = 0;  // distinguishes an error of readdir from the end
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return ErrnoToStatus(errno, absl::StrCat("list folder ", path));
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status RemoveFile(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    return ErrnoToStatus(errno, absl::StrCat("remove ", path));
  return absl::OkStatus();
}

absl::Status RemoveAll(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return ErrnoToStatus(error.value(), absl::StrCat("remove ", path));
  return absl::OkStatus();
}

absl::Status RenameFile(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("rename ", from, " to ", to));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> FreeBytes(const std::string& path) {
  struct statvfs info;
  if (::statvfs(path.c_str(), &info) != 0) return ErrnoToStatus(errno, absl::StrCat("statvfs ", path));
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

}  // namespace atl

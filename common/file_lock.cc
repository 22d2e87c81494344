#include "common/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/errno.h"
#include "common/file.h"
#include "common/printable.h"

namespace atl {
namespace {

std::string OwnerOf(const std::string& path) {
  const auto contents = ReadFile(path, 64);
  if (!contents.ok()) return "another process";
  int pid = 0;
  if (!absl::SimpleAtoi(*contents, &pid)) return "another process";
  // Of a library's worker it is the engine, whose number its user does not know.
  const auto name = ReadFile(absl::StrCat("/proc/", pid, "/comm"), 64);
  if (!name.ok()) return absl::StrCat("process ", pid);
  return absl::StrCat("process ", pid, " (", Printable(std::string(absl::StripAsciiWhitespace(*name))), ")");
}

}  // namespace

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoToStatus(errno, absl::StrCat("open lock file ", path));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoToStatus(errno, absl::StrCat("lock ", path));
    return absl::FailedPreconditionError(absl::StrCat(path, " is locked by ", OwnerOf(path),
                                                      ": stop that process, or choose another directory"));
  }
  const std::string pid = absl::StrCat(::getpid(), "\n");
  if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), pid.data(), pid.size(), 0) < 0) {
    return ErrnoToStatus(errno, absl::StrCat("write lock file ", path));
  }
  return FileLock(std::move(fd), path);
}

}  // namespace atl

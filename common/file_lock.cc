#include "common/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/errno.h"
#include "common/file.h"
#include "common/printable.h"

namespace atl {
namespace {

constexpr std::string_view kEngine = "atoll-engine";
constexpr uint64_t kMaxProcFile = 4096;

/// Empty: unknown.
std::string NameOf(int pid) {
  const auto name = ReadFile(absl::StrCat("/proc/", pid, "/comm"), kMaxProcFile);
  return name.ok() ? Printable(std::string(absl::StripAsciiWhitespace(*name))) : "";
}

/// 0: unknown.
int ParentOf(int pid) {
  const auto stat = ReadFile(absl::StrCat("/proc/", pid, "/stat"), kMaxProcFile);
  if (!stat.ok()) return 0;
  // "PID (NAME) STATE PARENT ...", and the name may have brackets and blanks.
  const size_t name_end = stat->rfind(") ");
  if (name_end == std::string::npos) return 0;
  const std::vector<std::string> fields = absl::StrSplit(stat->substr(name_end + 2), absl::MaxSplits(' ', 2));
  int parent = 0;
  return fields.size() > 1 && absl::SimpleAtoi(fields[1], &parent) ? parent : 0;
}

std::string ProcessText(int pid, const std::string& name) {
  return absl::StrCat("process ", pid, name.empty() ? "" : absl::StrCat(" (", name, ")"));
}

/// Who holds the lock, and what to do.
std::string OwnerOf(const std::string& path) {
  constexpr char kStopIt[] = ": stop that process, or choose another directory";
  const auto contents = ReadFile(path, 64);
  int pid = 0;
  if (!contents.ok() || !absl::SimpleAtoi(*contents, &pid)) return absl::StrCat("another process", kStopIt);
  const std::string name = NameOf(pid);
  const std::string owner = ProcessText(pid, name);
  if (name != kEngine) return absl::StrCat(owner, kStopIt);
  // The user of the library knows only the program that started the engine. An engine whose program has ended
  // ends too.
  const int parent = ParentOf(pid);
  if (parent <= 1) return absl::StrCat(owner, kStopIt);
  if (parent == ::getppid() && NameOf(::getpid()) == kEngine) {
    return absl::StrCat(owner, ": a worker of this same process (", parent,
                        ") still uses it: close it first, or choose another directory");
  }
  return absl::StrCat(owner, ", which belongs to ", ProcessText(parent, NameOf(parent)), kStopIt);
}

}  // namespace

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& path) {
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoToStatus(errno, absl::StrCat("open lock file ", path));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoToStatus(errno, absl::StrCat("lock ", path));
    return absl::FailedPreconditionError(absl::StrCat(path, " is locked by ", OwnerOf(path)));
  }
  const std::string pid = absl::StrCat(::getpid(), "\n");
  if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), pid.data(), pid.size(), 0) < 0) {
    return ErrnoToStatus(errno, absl::StrCat("write lock file ", path));
  }
  return FileLock(std::move(fd), path);
}

}  // namespace atl

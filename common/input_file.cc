#include "common/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/errno.h"

namespace atl {
namespace {

const char* NameOf(mode_t mode) {
  if (S_ISFIFO(mode)) return "a pipe (FIFO)";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

absl::StatusOr<FileDescriptor> OpenInput(const std::string& path, InputKind kind) {
  // Check the type first: opening a device may have effects, and a socket cannot be opened.
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return ErrnoToStatus(errno, absl::StrCat("open ", path));
  const auto allowed = [&] {
    return S_ISREG(info.st_mode) || (kind == InputKind::kFileOrPipe && S_ISFIFO(info.st_mode));
  };
  const auto rejection = [&] {
    if (S_ISDIR(info.st_mode)) return ErrnoToStatus(EISDIR, absl::StrCat("open ", path));
    return absl::FailedPreconditionError(
        absl::StrCat("open ", path, ": is ", NameOf(info.st_mode), ", not a file"));
  };
  if (!allowed()) return rejection();
  // O_NONBLOCK: the path may have become a pipe since the check, and open would wait for a writer.
  FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return ErrnoToStatus(errno, absl::StrCat("open ", path));
  if (::fstat(fd.get(), &info) != 0) return ErrnoToStatus(errno, absl::StrCat("stat ", path));
  if (!allowed()) return rejection();
  return fd;
}

}  // namespace atl

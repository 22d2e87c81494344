#include "common/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/errno.h"

namespace atl {
namespace {

int FlagsFor(OpenMode mode) {
  switch (mode) {
    case OpenMode::kCreateNew:
      return O_RDWR | O_CREAT | O_EXCL;
    case OpenMode::kCreateOrOpen:
      return O_RDWR | O_CREAT;
    case OpenMode::kTruncate:
      return O_RDWR | O_CREAT | O_TRUNC;
    case OpenMode::kOpenExisting:
      return O_RDWR;
    case OpenMode::kReadOnly:
      break;
  }
  return O_RDONLY;
}

}  // namespace

absl::StatusOr<DurableFile> DurableFile::Open(const std::string& path, OpenMode mode) {
  FileDescriptor fd(::open(path.c_str(), FlagsFor(mode) | O_CLOEXEC, 0644));
  if (!fd.valid()) return ErrnoToStatus(errno, absl::StrCat("open ", path));
  return DurableFile(std::move(fd), path);
}

absl::Status DurableFile::WriteAt(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return ErrnoToStatus(errno, absl::StrCat("write ", bytes.size(), " bytes at ", offset, " to ", path_));
    }
    offset += static_cast<uint64_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status DurableFile::ReadAt(uint64_t offset, std::span<std::byte> out) const {
  const uint64_t end = offset + out.size();
  while (!out.empty()) {
    const ssize_t n = ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoToStatus(errno, absl::StrCat("read ", path_));
    if (n == 0) {
      return absl::OutOfRangeError(
          absl::StrCat("read ", path_, ": it ends at byte ", offset, ", but ", end, " are needed"));
    }
    offset += static_cast<uint64_t>(n);
    out = out.subspan(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status DurableFile::Sync() {
  if (::fdatasync(fd_.get()) != 0) return ErrnoToStatus(errno, absl::StrCat("sync ", path_));
  return absl::OkStatus();
}

absl::Status DurableFile::Truncate(uint64_t size) {
  if (::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("set size of ", path_, " to ", size));
  }
  return absl::OkStatus();
}

absl::Status DurableFile::Reserve(uint64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  if (::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) == 0) return absl::OkStatus();
  if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR) return absl::OkStatus();
  return ErrnoToStatus(errno, absl::StrCat("reserve ", bytes, " bytes for ", path_));
}

absl::StatusOr<uint64_t> DurableFile::Size() const {
  struct stat info;
  if (::fstat(fd_.get(), &info) != 0) return ErrnoToStatus(errno, absl::StrCat("stat ", path_));
  return static_cast<uint64_t>(info.st_size);
}

absl::Status DurableFile::Close() {
  if (!fd_.valid()) return absl::OkStatus();
  // Linux releases the descriptor even if close fails, so never close it twice.
  if (::close(fd_.Release()) != 0 && errno != EINTR)
    return ErrnoToStatus(errno, absl::StrCat("close ", path_));
  return absl::OkStatus();
}

}  // namespace atl

#ifndef ATOLL_COMMON_FILE_LOCK_H_
#define ATOLL_COMMON_FILE_LOCK_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/file_descriptor.h"

namespace atl {

/// An exclusive flock on a file that shows the owner's process id. The kernel releases the lock when the
/// process ends in any way; the file stays.
class FileLock {
 public:
  /// Creates the file if needed. FailedPrecondition if another process, or another FileLock of this process,
  /// holds the lock: the message names the file and the owner's process id.
  static absl::StatusOr<FileLock> Acquire(const std::string& path);

  FileLock(FileLock&&) noexcept = default;
  FileLock& operator=(FileLock&&) noexcept = default;

  const std::string& path() const { return path_; }

 private:
  FileLock(FileDescriptor fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  FileDescriptor fd_;
  std::string path_;
};

}  // namespace atl

#endif  // ATOLL_COMMON_FILE_LOCK_H_

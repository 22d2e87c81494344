#ifndef ATOLL_COMMON_FILE_LOCK_H_
#define ATOLL_COMMON_FILE_LOCK_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/file_descriptor.h"

namespace atl {

/// An exclusive flock on a file, which holds its owner's process id for people. The kernel drops the lock
/// when the process dies, however it dies; the file itself stays.
class FileLock {
 public:
  /// Creates the file when it is not there. FailedPrecondition when another process (or another FileLock of
  /// this one) holds it: the message names the file and the owner's process id.
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

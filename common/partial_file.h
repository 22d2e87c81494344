#ifndef ATOLL_COMMON_PARTIAL_FILE_H_
#define ATOLL_COMMON_PARTIAL_FILE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file_descriptor.h"
#include "common/output_target.h"

namespace atl {

/// Writes a file under a temporary name and renames it when it is complete. Until then, and after an error,
/// an existing file of the final name is unchanged. Only one writer at a time: a lock on the partial file,
/// which the kernel releases when the process ends. Follows links as ResolveOutput does
/// (common/output_target.h). Contents for a pipe or a device behind a link are kept in memory until they are
/// complete, then written to it. Not thread-safe.
class PartialFile {
 public:
  /// Creates an empty file TARGET.partial, where TARGET is `path` or the end of its links. FailedPrecondition
  /// if `path` is a folder, a device or a pipe, a file that nobody may write (0444), or if another process is
  /// writing it.
  static absl::StatusOr<std::unique_ptr<PartialFile>> Create(const std::string& path);
  /// The same with the name `partial` in the folder of `path`, for folders whose readers select files by
  /// name. FailedPrecondition also for a link to a pipe or a device.
  static absl::StatusOr<std::unique_ptr<PartialFile>> Create(const std::string& path,
                                                             const std::string& partial);
  /// Removes the partial file if it was not published.
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  /// The path to open and write.
  const std::string& partial() const { return partial_; }

  /// Syncs the complete, closed file and renames it, or writes it to the stream. Call at most once.
  absl::Status Publish();

 private:
  PartialFile(OutputTarget target, std::string partial, FileDescriptor fd);

  const OutputTarget target_;
  const std::string partial_;
  const FileDescriptor fd_;  // holds the lock, or the memory of a stream's contents
  bool published_ = false;
};

}  // namespace atl

#endif  // ATOLL_COMMON_PARTIAL_FILE_H_

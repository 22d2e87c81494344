#ifndef ATOLL_COMMON_PARTIAL_FILE_H_
#define ATOLL_COMMON_PARTIAL_FILE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file_descriptor.h"

namespace atl {

/// Writes a file under a temporary name and renames it when it is complete. Until then, and after an error,
/// an existing file of the final name is unchanged. Only one writer at a time: a lock on the partial file,
/// which the kernel releases when the process ends. Follows a symbolic link. Not thread-safe.
class PartialFile {
 public:
  /// Creates an empty file PATH.partial. FailedPrecondition if `path` exists and is not a regular file (a
  /// folder, a device, a pipe), or if another process is writing it.
  static absl::StatusOr<std::unique_ptr<PartialFile>> Create(const std::string& path);
  /// The same with the name `partial` in the folder of `path`, for folders whose readers select files by
  /// name.
  static absl::StatusOr<std::unique_ptr<PartialFile>> Create(const std::string& path,
                                                             const std::string& partial);
  /// Removes the file if it was not published.
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  /// The path to open and write.
  const std::string& partial() const { return partial_; }

  /// Syncs the complete, closed file and renames it. Call at most once.
  absl::Status Publish();

 private:
  PartialFile(std::string path, std::string partial, FileDescriptor lock);

  const std::string path_;
  const std::string partial_;
  const FileDescriptor lock_;
  bool published_ = false;
};

}  // namespace atl

#endif  // ATOLL_COMMON_PARTIAL_FILE_H_

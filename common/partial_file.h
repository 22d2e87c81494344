#ifndef ATOLL_COMMON_PARTIAL_FILE_H_
#define ATOLL_COMMON_PARTIAL_FILE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file_descriptor.h"

namespace atl {

/// A file that takes long to write: it is written under another name and gets its own when it is complete.
/// Until then, and after an error, a file that already has the name stands. One writer at a time: a lock on
/// the partial file, which the kernel drops when its process dies. A symbolic link is followed. Not
/// thread-safe.
class PartialFile {
 public:
  /// Creates the file PATH.partial, empty. FailedPrecondition when `path` is no regular file (a folder, a
  /// device, a pipe), which would be replaced, and when another process is writing it.
  static absl::StatusOr<std::unique_ptr<PartialFile>> Create(const std::string& path);
  /// The same under the name `partial`, in the folder of `path`: for folders whose readers go by names.
  static absl::StatusOr<std::unique_ptr<PartialFile>> Create(const std::string& path,
                                                             const std::string& partial);
  /// Removes the file if it was not published.
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  /// What to open and to write.
  const std::string& partial() const { return partial_; }

  /// The file is complete and closed: syncs it and gives it its name. Call at most once.
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

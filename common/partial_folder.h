#ifndef ATOLL_COMMON_PARTIAL_FOLDER_H_
#define ATOLL_COMMON_PARTIAL_FOLDER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file_descriptor.h"

namespace atl {

/// Fills a folder under a temporary name and renames it when it is complete, so that a folder of the final
/// name always has all of its files. Only one writer at a time: a lock on the partial folder, which the
/// kernel releases when the process ends. What a killed process left is removed. Not thread-safe.
class PartialFolder {
 public:
  /// What happens to the files of a writer that did not get to the end.
  enum class LeftOver : uint8_t { kRemove, kContinue };

  /// Makes an empty folder TARGET.partial beside TARGET, where TARGET is `path` or the end of its links.
  /// FailedPrecondition if TARGET is a file or a folder with files, if another process is writing it, or if
  /// TARGET.partial was not made by this class.
  /// With kContinue the folder is not empty if a killed process, or one that called Keep, left files.
  static absl::StatusOr<std::unique_ptr<PartialFolder>> Create(const std::string& path,
                                                               LeftOver left_over = LeftOver::kRemove);
  /// Removes the partial folder if it was neither published nor kept.
  ~PartialFolder();
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  /// The folder to write into. The writer closes and syncs its files.
  const std::string& partial() const { return partial_; }

  /// Renames the folder. It survives a power cut. Call at most once.
  absl::Status Publish();

  /// Leaves the partial folder for a later kContinue.
  void Keep() { kept_ = true; }

 private:
  PartialFolder(std::string target, std::string partial, FileDescriptor fd);

  const std::string target_;
  const std::string partial_;
  const FileDescriptor fd_;  // holds the lock
  bool published_ = false;
  bool kept_ = false;
};

}  // namespace atl

#endif  // ATOLL_COMMON_PARTIAL_FOLDER_H_

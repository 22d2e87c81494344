#ifndef ATOLL_WORKER_DATA_OUTPUT_FOLDER_H_
#define ATOLL_WORKER_DATA_OUTPUT_FOLDER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/partial_folder.h"

namespace atl {

/// The folder of a new dataset: FOLDER.partial, until Publish renames it. Makes missing folders above it, and
/// takes them away again after a failure.
class OutputFolder {
 public:
  /// AlreadyExists if the folder holds a dataset or other files; FailedPrecondition for a mount point, and
  /// when another process writes the folder.
  static absl::StatusOr<OutputFolder> Create(const std::string& folder, PartialFolder::LeftOver left_over);

  OutputFolder(OutputFolder&& other) noexcept;
  OutputFolder& operator=(OutputFolder&&) = delete;
  ~OutputFolder();

  const std::string& partial() const { return partial_->partial(); }
  absl::Status Publish();
  /// Leaves the partial folder for a later call that continues.
  void Keep() { partial_->Keep(); }

 private:
  OutputFolder() = default;

  std::vector<std::string> made_;  // folders above it, the innermost first
  std::unique_ptr<PartialFolder> partial_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_OUTPUT_FOLDER_H_

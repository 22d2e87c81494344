#ifndef ATOLL_CLI_EXPORT_FILES_H_
#define ATOLL_CLI_EXPORT_FILES_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/published_model.h"
#include "common/partial_file.h"
#include "core/run_options.h"

// The safetensors files that an export writes. docs/reference/model_files.md, "Export".

namespace atl {

/// A file of an export. It appears when it is complete.
class ExportFile {
 public:
  /// Before the model is there, so that a folder without write permission fails at once. Errors as of
  /// PartialFile::Create, with `option` before them.
  static absl::StatusOr<ExportFile> Create(const std::string& option, const std::string& path);

  const std::string& path() const { return path_; }
  /// The manifest's tensors as float32.
  absl::Status WriteModel(const PublishedModel& model);
  /// Every vector of the outer optimizer, cut into the manifest's tensors: VECTOR.TENSOR.
  absl::Status WriteOuterState(const PublishedModel& model);
  absl::Status Publish();

 private:
  ExportFile(std::string path, std::unique_ptr<PartialFile> partial)
      : path_(std::move(path)), partial_(std::move(partial)) {}

  std::string path_;
  std::unique_ptr<PartialFile> partial_;
};

/// The file of the outer optimizer's momentum beside a file or a folder: model.momentum.safetensors beside
/// model.safetensors.
std::string MomentumPath(const std::string& out);

/// InvalidArgument if the outer optimizer of the run keeps nothing between its steps.
absl::Status CheckMomentum(const RunOptions& run);

}  // namespace atl

#endif  // ATOLL_CLI_EXPORT_FILES_H_

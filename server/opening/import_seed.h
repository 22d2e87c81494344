#ifndef ATOLL_SERVER_OPENING_IMPORT_SEED_H_
#define ATOLL_SERVER_OPENING_IMPORT_SEED_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/fragment_plan.h"
#include "core/manifest.h"
#include "server/create_coordinator.h"
#include "server/rounds/tensor_buffer.h"

namespace atl {

/// What a run is seeded with, read and checked.
struct ImportedSeed {
  Manifest manifest;
  std::vector<FragmentLayout> layouts;
  std::vector<TensorBuffer> buffers;  // by fragment
};

/// Before a data directory is made: whether ReadImport will succeed with this file or folder, if any. Reads
/// all of it. Errors as of ReadImport, and those of opening a file.
absl::Status CheckImport(const std::string& path, const RunOptions& run);

/// Reads options.import_path, when that is set: version 0 of the model of the configuration. It is a file, a
/// folder or an index (storage/weights/model_files.h) with the tensors of the model under the names of its
/// table (core/hf/layout.h), no more and no fewer; the config.json of a folder must not contradict the model.
/// An external model has the file's tensors. InvalidArgument naming file and tensor. Before a new run is
/// recorded, so that a file that cannot be used leaves no run behind.
absl::StatusOr<std::optional<ImportedSeed>> ReadImport(const CoordinatorOptions& options);

/// The file's tensors, under the manifest's names, as flat vectors of the fragments, gaps zero. F32 as it is,
/// F16 and BF16 widened. InvalidArgument naming file and tensor for another name, shape or dtype, and for a
/// value that is not finite.
absl::StatusOr<std::vector<TensorBuffer>> ReadSafetensors(const std::string& path, const Manifest& manifest,
                                                          const std::vector<FragmentLayout>& layouts);

}  // namespace atl

#endif  // ATOLL_SERVER_OPENING_IMPORT_SEED_H_

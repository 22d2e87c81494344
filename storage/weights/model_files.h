#ifndef ATOLL_STORAGE_WEIGHTS_MODEL_FILES_H_
#define ATOLL_STORAGE_WEIGHTS_MODEL_FILES_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/mapped_file.h"
#include "core/hf/tensor_match.h"
#include "core/safetensors.h"

namespace atl {

/// The safetensors files of a model, mapped. Values are read from the disk when they are looked at.
class ModelFiles {
 public:
  /// `path` is one of
  ///   - a safetensors file;
  ///   - a folder of transformers with config.json and either model.safetensors or, in several files,
  ///     model.safetensors.index.json;
  ///   - such an index, with its files and config.json beside it.
  /// Checks everything but the values: each file by itself, that the index names every tensor in its file,
  /// and no others. Links are followed, because the cache of the hub has links in its folders. Errors name
  /// the file: NotFound, FailedPrecondition (not a regular file), InvalidArgument (its contents).
  static absl::StatusOr<ModelFiles> Open(const std::string& path);

  /// The tensors of all files, in the order of the files' names and then of their bytes; the first file's
  /// metadata.
  const SafetensorsFile& contents() const { return contents_; }
  /// The same tensors, with their files. Valid as long as this object, or the one that it is moved to.
  std::vector<FoundTensor> found() const;

  /// config.json; nullopt if `path` is a safetensors file, which may stand anywhere.
  struct Config {
    std::string path;
    std::string text;
  };
  const std::optional<Config>& config() const { return config_; }

 private:
  absl::Status AddFile(const std::string& path, const std::vector<std::string>* expected);
  absl::Status AddIndexed(const std::string& index);
  absl::Status ReadConfig(const std::string& folder);

  std::vector<MappedFile> maps_;
  SafetensorsFile contents_;
  std::vector<size_t> files_;  // of each tensor: index into maps_
  std::optional<Config> config_;
};

/// Whether `path` is a folder or an index: several files, of which config.json is one.
bool IsModelFolder(const std::string& path);

}  // namespace atl

#endif  // ATOLL_STORAGE_WEIGHTS_MODEL_FILES_H_

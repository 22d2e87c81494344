#ifndef ATOLL_STORAGE_WEIGHTS_HF_FOLDER_H_
#define ATOLL_STORAGE_WEIGHTS_HF_FOLDER_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/hf/layout.h"
#include "core/hf/values.h"
#include "storage/weights/tokenizer_files.h"

namespace atl {

inline constexpr uint64_t kDefaultShardBytes = 5'000'000'000;

/// What a folder of transformers is made of.
struct HfFolderContents {
  HfLayout layout;
  /// The run's tensors, parallel to layout.tensors.
  std::vector<std::span<const float>> tensors;
  FileDtype dtype = FileDtype::kF32;
  uint64_t shard_bytes = kDefaultShardBytes;    // of tensors in one file; a larger tensor has its own file
  std::map<std::string, std::string> metadata;  // of every file, besides "format"
  TokenizerFiles tokenizer;
};

/// Writes the files into an empty folder, each synced: the tensors in one file, or in several and an index;
/// config.json; generation_config.json; the tokenizer's files. Returns their names. InvalidArgument names a
/// tensor with a finite value that the dtype cannot hold. After an error, the folder holds a part of them.
absl::StatusOr<std::vector<std::string>> WriteHfFolder(const std::string& folder,
                                                       const HfFolderContents& contents);

}  // namespace atl

#endif  // ATOLL_STORAGE_WEIGHTS_HF_FOLDER_H_

#ifndef ATOLL_STORAGE_WEIGHTS_TOKENIZER_FILES_H_
#define ATOLL_STORAGE_WEIGHTS_TOKENIZER_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/hf/config_file.h"

namespace atl {

/// A tokenizer's files under the names that transformers knows, to be copied as they are.
struct TokenizerFiles {
  struct File {
    std::string name;
    std::string contents;
  };
  std::vector<File> files;
  HfTokenIds ids;  // of generation_config.json or config.json there
};

/// Reads the tokenizer's files of a folder, at most 64 MiB each. NotFound if it has none, InvalidArgument for
/// a .json file that is not JSON (a download that broke off). `vocabulary`: token ids that are not below are
/// not of this model.
absl::StatusOr<TokenizerFiles> ReadTokenizerFiles(const std::string& folder, uint32_t vocabulary);

}  // namespace atl

#endif  // ATOLL_STORAGE_WEIGHTS_TOKENIZER_FILES_H_

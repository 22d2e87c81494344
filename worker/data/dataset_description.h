#ifndef ATOLL_WORKER_DATA_DATASET_DESCRIPTION_H_
#define ATOLL_WORKER_DATA_DATASET_DESCRIPTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace atoll {

/// One token file, as meta.json lists it.
struct TokenFileEntry {
  std::string name;  // inside the folder
  uint64_t tokens = 0;
  std::string sha256;  // of the tokens, hex
};

/// meta.json of a tokenised text.
struct DatasetDescription {
  std::string tokenizer;  // "unknown" when the folder came without meta.json
  uint32_t vocabulary = 0;
  std::vector<TokenFileEntry> train;
  TokenFileEntry validation;
  std::string fingerprint;  // SHA-256, hex; see Fingerprint
};

/// SHA-256 of "tokenizer vocabulary\n" and one line "name tokens sha256\n" per file, training files first.
std::string Fingerprint(const DatasetDescription& description);

std::string DescriptionToJson(const DatasetDescription& description);

/// InvalidArgument naming `path` and the field when the text is no description, or its fingerprint is not
/// that of its contents.
absl::StatusOr<DatasetDescription> DescriptionFromJson(const std::string& path, const std::string& json);

}  // namespace atoll

#endif  // ATOLL_WORKER_DATA_DATASET_DESCRIPTION_H_

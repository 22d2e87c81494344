#ifndef ATOLL_WORKER_DATA_DATASET_DESCRIPTION_H_
#define ATOLL_WORKER_DATA_DATASET_DESCRIPTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/token_width.h"

namespace atl {

/// One token file, or a part of one, as meta.json lists it.
struct TokenFileEntry {
  std::string name;  // inside the folder
  uint64_t tokens = 0;
  std::string sha256;        // of these tokens without the file's header, hex
  uint64_t first = 0;        // the part begins at this token of the file
  uint64_t file_tokens = 0;  // of the whole file; 0: `tokens`

  bool whole() const { return file_tokens == 0 || file_tokens == tokens; }
};

/// meta.json of a tokenised text.
struct DatasetDescription {
  std::string tokenizer;
  uint32_t vocabulary = 0;
  std::vector<TokenFileEntry> train;
  TokenFileEntry validation;
  std::string fingerprint;             // SHA-256, hex; see Fingerprint
  std::optional<TokenId> end_of_text;  // the last token of each document, if it is known
};

/// SHA-256 of "tokenizer vocabulary\n" and one line "name tokens sha256\n" per file, training files first.
std::string Fingerprint(const DatasetDescription& description);

std::string DescriptionToJson(const DatasetDescription& description);

/// InvalidArgument naming `path` and the field when the text is no description, or its fingerprint is not
/// that of its contents.
absl::StatusOr<DatasetDescription> DescriptionFromJson(const std::string& path, const std::string& json);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_DATASET_DESCRIPTION_H_

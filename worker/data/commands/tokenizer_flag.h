#ifndef ATOLL_WORKER_DATA_COMMANDS_TOKENIZER_FLAG_H_
#define ATOLL_WORKER_DATA_COMMANDS_TOKENIZER_FLAG_H_

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "worker/data/tokenizer.h"

namespace atl {

/// --tokenizer and --tokenizer-pattern.
struct TokenizerFlag {
  std::string name;  // of a tokenizer that Atoll has itself, or a path
  std::string pattern;

  void AddTo(CLI::App& command);
  absl::StatusOr<std::unique_ptr<Tokenizer>> Make() const;
};

/// The tokenizer of a dataset: that of the flag, which must have the dataset's name, or without a flag the
/// one of this name that Atoll has itself. InvalidArgument saying which file to name.
absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerOf(const std::string& dataset_tokenizer,
                                                       const TokenizerFlag& flag);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_COMMANDS_TOKENIZER_FLAG_H_

#ifndef ATOLL_WORKER_DATA_REWRITE_H_
#define ATOLL_WORKER_DATA_REWRITE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/dataset_description.h"

namespace atl {

struct RewriteOptions {
  std::vector<std::string> folders;  // dataset folders of one tokenizer
  std::string out;                   // a new one
  uint64_t tokens_per_file = uint64_t{1} << 28;
  /// The last part of all text is held out. Without it, what the folders hold out.
  std::optional<double> held_out_share = {};
};

/// Tokens written so far, and in all.
using RewriteProgress = std::function<void(uint64_t done, uint64_t total)>;

/// Writes the texts of dataset folders, one after the other, as a new one with files of llm.c's layout,
/// whatever the layout of the files was. The new folder appears when it is complete. Errors as for
/// Dataset::Open and OutputFolder; InvalidArgument for folders of different tokenizers and for a share that
/// leaves one part empty.
absl::StatusOr<DatasetDescription> Rewrite(const RewriteOptions& options, const RewriteProgress& progress);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_REWRITE_H_

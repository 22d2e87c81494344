#ifndef ATOLL_CLI_HF_EXPORT_H_
#define ATOLL_CLI_HF_EXPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/published_model.h"
#include "core/hf/values.h"
#include "core/run_options.h"
#include "storage/weights/hf_folder.h"
#include "storage/weights/tokenizer_files.h"

namespace atl {

/// How to write a folder for Hugging Face's transformers.
struct HfExportOptions {
  FileDtype dtype = FileDtype::kF32;
  uint64_t shard_bytes = kDefaultShardBytes;
  std::string tokenizer;  // folder with a tokenizer's files to copy; empty: none
};

/// InvalidArgument if transformers does not have the run's family of models.
absl::Status CheckHfExport(const RunOptions& run);

/// The files of the tokenizer's folder, if any, and the ids of the tokens that begin and end a text: those of
/// the folder, else those of the run's tokenizer where they are known.
absl::StatusOr<TokenizerFiles> TokenizerForExport(const RunOptions& run, const HfExportOptions& options);

/// Writes the model into an empty folder. Returns the names of the files.
absl::StatusOr<std::vector<std::string>> WriteHfExport(const std::string& folder, const PublishedModel& model,
                                                       TokenizerFiles tokenizer,
                                                       const HfExportOptions& options);

}  // namespace atl

#endif  // ATOLL_CLI_HF_EXPORT_H_

#include "cli/hf_export.h"

#include <utility>

#include "common/status.h"
#include "core/hf/layout.h"

namespace atl {
namespace {

constexpr char kGpt2Tokenizer[] = "gpt2";
constexpr int64_t kGpt2EndOfText = 50256;  // begins a text, too

}  // namespace

absl::Status CheckHfExport(const RunOptions& run) {
  if (HfLayoutOf(run.model)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--format hf: the model of the run is external, and only its workers know what config.json must say; "
      "export it with --format safetensors");
}

absl::StatusOr<TokenizerFiles> TokenizerForExport(const RunOptions& run, const HfExportOptions& options) {
  TokenizerFiles tokenizer;
  if (!options.tokenizer.empty()) {
    ATOLL_ASSIGN_OR_RETURN(tokenizer, ReadTokenizerFiles(options.tokenizer, run.model.vocabulary()));
  }
  if (run.data.tokenizer == kGpt2Tokenizer && run.model.vocabulary() > kGpt2EndOfText) {
    if (!tokenizer.ids.begin) tokenizer.ids.begin = kGpt2EndOfText;
    if (tokenizer.ids.ends.empty()) tokenizer.ids.ends = {kGpt2EndOfText};
  }
  return tokenizer;
}

absl::StatusOr<std::vector<std::string>> WriteHfExport(const std::string& folder, const PublishedModel& model,
                                                       TokenizerFiles tokenizer,
                                                       const HfExportOptions& options) {
  ATOLL_RETURN_IF_ERROR(CheckHfExport(model.options));
  HfFolderContents contents;
  contents.layout = *HfLayoutOf(model.options.model);
  contents.tensors = TensorsOf(model);
  contents.dtype = options.dtype;
  contents.shard_bytes = options.shard_bytes;
  contents.metadata = VersionMetadata(model);
  contents.tokenizer = std::move(tokenizer);
  return WriteHfFolder(folder, contents);
}

}  // namespace atl

#include "worker/torch/replica_data.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "core/model_shape.h"
#include "worker/torch/language_model.h"

namespace atl {
namespace {

absl::Status NoEndOfText(const std::string& folder, const std::string& tokenizer) {
  const std::string problem = absl::StrCat("data.isolate_documents: the description of ", folder,
                                           " does not say which token ends a document");
  if (tokenizer == "bytes") {
    return absl::InvalidArgumentError(absl::StrCat(
        problem,
        ", and the tokenizer 'bytes' has no such token; tokenize the text with another tokenizer, or "
        "begin a run without data.isolate_documents"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      problem,
      " (end_of_text in meta.json); if shards were adopted, remove meta.json and adopt them again with "
      "--end-of-text N (of GPT-2, 50256); a mixture needs the same token in all its datasets"));
}

}  // namespace

absl::StatusOr<ReplicaData> OpenReplicaData(const RunOptions& run, const std::string& folder) {
  ATOLL_RETURN_IF_ERROR(CheckModelOptions(run.model));
  if (run.inner.batch == 0 || run.inner.accumulation == 0) {
    return absl::InvalidArgumentError("inner.batch and inner.accumulation must be positive");
  }
  ReplicaData opened{.data = nullptr,
                     .sequences = {.context = run.model.context(), .bounds = run.data.sequences}};
  if (folder.empty()) return opened;
  ATOLL_ASSIGN_OR_RETURN(TrainingData data,
                         TrainingData::Open(folder, {.vocabulary = run.model.vocabulary(),
                                                     .context = run.model.context(),
                                                     .tokenizer = run.data.tokenizer,
                                                     .section = ShapeOf(run.model)->section(),
                                                     .sequences = run.data.sequences}));
  if (run.data.isolate_documents) {
    if (!data.end_of_text()) return NoEndOfText(folder, data.tokenizer());
    opened.sequences.end_of_document = data.end_of_text();
  }
  opened.data = std::make_shared<const TrainingData>(std::move(data));
  return opened;
}

}  // namespace atl

#ifndef ATOLL_WORKER_DATA_DATASET_H_
#define ATOLL_WORKER_DATA_DATASET_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/run_options.h"
#include "core/sample_index.h"
#include "worker/data/dataset_description.h"
#include "worker/data/token_file.h"

namespace atl {

/// What the model expects of the files.
struct DatasetRequirements {
  uint32_t vocabulary = 0;            // of the model
  uint32_t context = 0;               // tokens; both splits must hold at least one window of context+1
  std::string tokenizer;              // empty: any
  std::string section = "model.gpt";  // of the model in the configuration, for messages
  /// Where a training sample may lie. Tools that read tokens and no samples leave it.
  SequenceBounds sequences = SequenceBounds::kAcrossFiles;
};

/// Tokenised text in one folder: token files and the meta.json that lists them (docs/reference/training.md),
/// made by worker/data/tokenize/tokenize.h or adopt.h. The training files are one text, in the order of the
/// list. Memory-mapped, immutable, thread-safe.
class Dataset {
 public:
  /// Opens and checks every file. Errors name the file and the remedy: NotFound, also for a folder without
  /// meta.json; InvalidArgument when files and description or requirements disagree.
  static absl::StatusOr<Dataset> Open(const std::string& folder, const DatasetRequirements& requirements);

  /// Reads every token again and compares its SHA-256 with the description's. InvalidArgument naming the file
  /// that differs. Open does not do this: it checks sizes and the vocabulary only.
  absl::Status VerifyContents() const {
    return VerifyContents([] { return true; });
  }
  /// The same, in pieces: Cancelled if `go_on` says no before one of them. NotFound naming a file that was
  /// shortened since Open.
  absl::Status VerifyContents(const std::function<bool()>& go_on) const;

  /// When a file of it was last written to, in nanoseconds since 1970 (TokenFile::ModifiedNanos).
  int64_t ModifiedNanos() const;

  const DatasetDescription& description() const { return description_; }
  /// Equal exactly when tokenizer and all tokens are equal; what a Join compares.
  const std::string& fingerprint() const { return description_.fingerprint; }

  uint64_t train_tokens() const { return train_tokens_; }
  /// See TokenFile::tokens().
  const std::vector<TokenFile>& train_files() const { return train_; }
  /// See TokenFile::tokens().
  const TokenView& validation() const { return validation_.tokens(); }
  uint64_t validation_tokens() const { return validation_.size(); }

  /// The training samples of this context.
  SampleIndex Samples(uint32_t context, SequenceBounds bounds) const;

  /// Copies training tokens [begin, begin + out.size()) of the whole text, across files. Requires begin +
  /// out.size() <= train_tokens(). NotFound naming a file that was shortened since Open.
  absl::Status ReadTrain(uint64_t begin, std::span<TokenId> out) const;
  /// The same of the held-out text.
  absl::Status ReadValidation(uint64_t begin, std::span<TokenId> out) const;

 private:
  Dataset(DatasetDescription description, std::vector<TokenFile> train, TokenFile validation);

  DatasetDescription description_;
  std::vector<TokenFile> train_;
  std::vector<uint64_t> starts_;  // first token of each training file in the whole text
  TokenFile validation_;
  uint64_t train_tokens_ = 0;
};

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_DATASET_H_

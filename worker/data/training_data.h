#ifndef ATOLL_WORKER_DATA_TRAINING_DATA_H_
#define ATOLL_WORKER_DATA_TRAINING_DATA_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/data_passes.h"
#include "core/token_width.h"
#include "worker/data/dataset.h"
#include "worker/data/mixture_description.h"

namespace atl {

/// What a worker trains on: the dataset of a folder, or the datasets of a mixture (`atoll-data mix`) with
/// their weights. Immutable and thread-safe.
class TrainingData {
 public:
  struct Part {
    std::string folder;  // as the mixture names it; of a single dataset, its own
    Dataset dataset;
    uint32_t weight = 1;
  };

  /// Opens every part and checks it as Dataset::Open does. Of a mixture also, naming mixture and part:
  /// NotFound for a part that is missing; FailedPrecondition for a part whose fingerprint is not the recorded
  /// one; InvalidArgument for a description that is damaged.
  static absl::StatusOr<TrainingData> Open(const std::string& folder,
                                           const DatasetRequirements& requirements);

  /// At least one; a mixture has at least two.
  const std::vector<Part>& parts() const { return parts_; }
  bool is_mixture() const { return parts_.size() > 1; }

  const std::string& tokenizer() const { return parts_.front().dataset.description().tokenizer; }
  uint32_t vocabulary() const { return parts_.front().dataset.description().vocabulary; }
  /// The last token of each document, if it is known and the same in all parts.
  const std::optional<TokenId>& end_of_text() const { return end_of_text_; }
  /// What a Join compares. Of a mixture, it covers the parts' tokens and weights.
  const std::string& fingerprint() const { return fingerprint_; }
  /// Of all parts together.
  uint64_t train_tokens() const;
  /// The share of the run's samples that each part gives.
  std::vector<TextShare> shares() const;

  /// See Dataset::VerifyContents.
  absl::Status VerifyContents(const std::function<bool()>& go_on) const;
  /// When a file was last written to, in nanoseconds since 1970 (TokenFile::ModifiedNanos).
  int64_t ModifiedNanos() const;

 private:
  explicit TrainingData(std::vector<Part> parts, std::string fingerprint);
  static absl::StatusOr<TrainingData> OpenMixture(const std::string& folder,
                                                  const MixtureDescription& mixture,
                                                  const DatasetRequirements& requirements);

  std::vector<Part> parts_;
  std::string fingerprint_;
  std::optional<TokenId> end_of_text_;
};

/// The end-of-text token of all datasets; nullopt if they differ or one has none.
std::optional<TokenId> CommonEndOfText(const std::vector<const DatasetDescription*>& descriptions);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_TRAINING_DATA_H_

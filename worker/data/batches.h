#ifndef ATOLL_WORKER_DATA_BATCHES_H_
#define ATOLL_WORKER_DATA_BATCHES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/mixture_order.h"
#include "core/partition.h"
#include "core/run_options.h"
#include "core/sample_index.h"
#include "core/token_width.h"
#include "worker/data/training_data.h"

namespace atl {

/// How a text becomes samples.
struct SequenceOptions {
  uint32_t context = 0;  // tokens; above 0
  SequenceBounds bounds = SequenceBounds::kWithinFiles;
  /// The token that ends each document, if no token may see another document. Empty: a sample is one text.
  std::optional<TokenId> end_of_document = std::nullopt;
};

/// A target that the loss leaves out.
inline constexpr int64_t kIgnoredTarget = -100;

/// Inputs and targets of one batch, row by row: [sequences, context] each; targets are the inputs shifted by
/// one. With SequenceOptions.end_of_document, `documents` and `positions` have the same shape, and are empty
/// otherwise. A document's last input predicts nothing: its target is kIgnoredTarget, because the token after
/// it belongs to another document.
struct Batch {
  std::vector<int64_t> inputs;
  std::vector<int64_t> targets;
  std::vector<int64_t> documents;  // of each input, counted from 0 in its row
  std::vector<int64_t> positions;  // of each input in the part of its document that the row has, from 0

  /// Targets that the loss counts.
  uint64_t counted_targets() const;
};

/// One sample of the training data.
struct SamplePlace {
  uint32_t part = 0;         // of TrainingData::parts()
  uint64_t sample = 0;       // of the part
  uint64_t first_token = 0;  // in the part's training text
};

/// One worker's own sequence of training samples: partition `partition` of `partitions` of the run's sample
/// order (docs/reference/data_order.md), from which its position picks. Reads only; the position is the
/// caller's. Thread-safe for distinct objects.
class TrainingSamples {
 public:
  /// Requires partition < partitions, and a sample in every part of the data.
  TrainingSamples(std::shared_ptr<const TrainingData> data, const SequenceOptions& sequences, uint64_t seed,
                  uint32_t partition, uint32_t partitions);

  /// What stands at this position of the partition.
  SamplePlace At(uint64_t position) const;

  /// Fills `batch` with samples position .. position + sequences - 1. NotFound naming a file that was
  /// shortened while it is in use.
  absl::Status Read(uint64_t position, uint32_t sequences, Batch& batch);

 private:
  struct Part {
    SampleIndex index;
    SampleOrder order;
  };
  const std::shared_ptr<const TrainingData> data_;
  const SequenceOptions sequences_;
  const uint32_t partition_;
  const uint32_t partitions_;
  std::vector<Part> parts_;
  std::optional<MixtureOrder> mixture_;  // of two parts or more
  std::vector<TokenId> window_;
};

/// Windows of held-out text. Window i of a dataset starts at its token i*context. Those of a mixture are read
/// in the ratio of the weights, until the part that is next has no more (docs/reference/data_order.md,
/// "Held-out text of a mixture"). Not thread-safe.
class ValidationSamples {
 public:
  ValidationSamples(std::shared_ptr<const TrainingData> data, const SequenceOptions& sequences);

  /// Fills `batch` with the windows first .. first + count - 1, fewer at the end. Returns how many. NotFound
  /// as above. O(1) per window where calls follow one another, else from the first window on.
  absl::StatusOr<uint32_t> Read(uint64_t first, uint32_t count, Batch& batch);

 private:
  /// Smooth weighted round-robin over the parts.
  struct Turn {
    int64_t credit = 0;
    uint64_t read = 0;
  };
  struct Window {
    size_t part = 0;
    uint64_t number = 0;
  };
  /// nullopt at the end.
  std::optional<Window> Next();
  void Restart();

  const std::shared_ptr<const TrainingData> data_;
  const SequenceOptions sequences_;
  int64_t weights_ = 0;
  std::vector<Turn> turns_;
  uint64_t next_ = 0;
  std::vector<TokenId> window_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_BATCHES_H_

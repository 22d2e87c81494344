#ifndef ATOLL_WORKER_DATA_BATCHES_H_
#define ATOLL_WORKER_DATA_BATCHES_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/partition.h"
#include "worker/data/dataset.h"

namespace atl {

/// Inputs and targets of one batch, row by row: [sequences, context] each; targets are the inputs shifted by
/// one.
struct Batch {
  std::vector<int64_t> inputs;
  std::vector<int64_t> targets;
};

/// One worker's own sequence of training samples: partition `partition` of `partitions` of the run's sample
/// order (docs/reference/data_order.md), from which its position picks. Reads only; the position is the
/// caller's. Thread-safe for distinct objects.
class TrainingSamples {
 public:
  /// Requires partition < partitions and a training text longer than `context`.
  TrainingSamples(std::shared_ptr<const Dataset> dataset, uint32_t context, uint64_t seed, uint32_t partition,
                  uint32_t partitions);

  /// Fills `batch` with samples position .. position + sequences - 1. NotFound naming a file that was
  /// shortened while it is in use.
  absl::Status Read(uint64_t position, uint32_t sequences, Batch& batch);

 private:
  const std::shared_ptr<const Dataset> dataset_;
  const uint32_t context_;
  const uint32_t partition_;
  const uint32_t partitions_;
  SampleOrder order_;
  std::vector<TokenId> window_;
};

/// Windows of held-out text, in the order of the text. Window i starts at token i*context.
class ValidationSamples {
 public:
  ValidationSamples(std::shared_ptr<const Dataset> dataset, uint32_t context);

  uint64_t size() const { return size_; }
  /// Fills `batch` with samples first .. first + sequences - 1, fewer at the end of the text. Returns how
  /// many. NotFound as above.
  absl::StatusOr<uint32_t> Read(uint64_t first, uint32_t sequences, Batch& batch);

 private:
  const std::shared_ptr<const Dataset> dataset_;
  const uint32_t context_;
  const uint64_t size_;
  std::vector<TokenId> window_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_BATCHES_H_

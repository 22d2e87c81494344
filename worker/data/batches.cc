#include "worker/data/batches.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace atl {
namespace {

void Clear(uint64_t tokens, Batch& batch) {
  batch.inputs.clear();
  batch.targets.clear();
  batch.inputs.reserve(tokens);
  batch.targets.reserve(tokens);
}

// `window` has context+1 tokens.
void AppendWindow(std::span<const TokenId> window, Batch& batch) {
  batch.inputs.insert(batch.inputs.end(), window.begin(), window.end() - 1);
  batch.targets.insert(batch.targets.end(), window.begin() + 1, window.end());
}

}  // namespace

TrainingSamples::TrainingSamples(std::shared_ptr<const Dataset> dataset, uint32_t context, uint64_t seed,
                                 uint32_t partition, uint32_t partitions)
    : dataset_(std::move(dataset)),
      context_(context),
      partition_(partition),
      partitions_(partitions),
      order_(SampleCount(dataset_->train_tokens(), context), seed),
      window_(size_t{context} + 1) {}

absl::Status TrainingSamples::Read(uint64_t position, uint32_t sequences, Batch& batch) {
  Clear(uint64_t{sequences} * context_, batch);
  for (uint32_t i = 0; i < sequences; ++i) {
    const uint64_t sample = order_.SampleAt(partition_, partitions_, position + i);
    ATOLL_RETURN_IF_ERROR(dataset_->ReadTrain(sample * context_, window_));
    AppendWindow(window_, batch);
  }
  return absl::OkStatus();
}

ValidationSamples::ValidationSamples(std::shared_ptr<const Dataset> dataset, uint32_t context)
    : dataset_(std::move(dataset)),
      context_(context),
      size_(SampleCount(dataset_->validation_tokens(), context)),
      window_(size_t{context} + 1) {}

absl::StatusOr<uint32_t> ValidationSamples::Read(uint64_t first, uint32_t sequences, Batch& batch) {
  const uint64_t last = std::min(size_, first + sequences);
  Clear((last - std::min(first, last)) * context_, batch);
  for (uint64_t sample = first; sample < last; ++sample) {
    ATOLL_RETURN_IF_ERROR(dataset_->ReadValidation(sample * context_, window_));
    AppendWindow(window_, batch);
  }
  return static_cast<uint32_t>(last - std::min(first, last));
}

}  // namespace atl

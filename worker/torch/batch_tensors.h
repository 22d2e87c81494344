#ifndef ATOLL_WORKER_TORCH_BATCH_TENSORS_H_
#define ATOLL_WORKER_TORCH_BATCH_TENSORS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "worker/data/batches.h"
#include "worker/torch/document_layout.h"
#include "worker/torch/libtorch.h"

namespace atl {

/// A batch on the device that computes.
struct BatchTensors {
  torch::Tensor inputs;   // [sequences, context], int64
  torch::Tensor targets;  // the same
  std::optional<DocumentLayout> documents = std::nullopt;
};

/// As int64 [rows, tokens / rows]. On a GPU the copy is under way when this returns; `tokens` may change. On
/// the processor the tensor is `tokens` themselves.
torch::Tensor TokensOnDevice(const std::vector<int64_t>& tokens, int64_t rows, const torch::Device& device);

/// The same of a batch of `rows` sequences.
BatchTensors BatchOnDevice(const Batch& batch, int64_t rows, const torch::Device& device);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_BATCH_TENSORS_H_

#include "worker/torch/batch_tensors.h"

namespace atl {

torch::Tensor TokensOnDevice(const std::vector<int64_t>& tokens, int64_t rows, const torch::Device& device) {
  // from_blob takes a mutable pointer; the tensor is only read.
  torch::Tensor host = torch::from_blob(const_cast<int64_t*>(tokens.data()),
                                        {rows, static_cast<int64_t>(tokens.size()) / rows}, torch::kInt64);
  if (device.is_cpu()) return host;
  // A copy from memory that is not pinned waits for everything that the device has to do before it.
  return host.pin_memory().to(device, /*non_blocking=*/true);
}

BatchTensors BatchOnDevice(const Batch& batch, int64_t rows, const torch::Device& device) {
  BatchTensors tensors{.inputs = TokensOnDevice(batch.inputs, rows, device),
                       .targets = TokensOnDevice(batch.targets, rows, device)};
  if (!batch.documents.empty()) {
    tensors.documents.emplace(TokensOnDevice(batch.documents, rows, device),
                              TokensOnDevice(batch.positions, rows, device));
  }
  return tensors;
}

}  // namespace atl

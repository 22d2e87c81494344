#ifndef ATOLL_WORKER_TORCH_HEAD_LOSS_H_
#define ATOLL_WORKER_TORCH_HEAD_LOSS_H_

#include <torch/torch.h>

#include <cstdint>

namespace atl {

/// HeadLoss computes as many columns as a multiple of this.
inline constexpr int64_t kHeadColumns = 64;

/// The mean cross-entropy of the logits x * head^T, a float32 scalar, with gradients for x and head. For
/// devices with matrix units, where it has two advantages over log_softmax and nll_loss:
/// - A vocabulary such as 50257 of GPT-2 makes rows that the units cannot read aligned. Columns are added up
/// to a
///   multiple of kHeadColumns; they have no probability and no gradient.
/// - The gradient of the logits, softmax - onehot, is one pass over memory, and not five.
/// x: [rows, width]; head: [vocabulary, width], both bfloat16 or float32; targets: int64 [rows].
torch::Tensor HeadLoss(const torch::Tensor& x, const torch::Tensor& head, const torch::Tensor& targets);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_HEAD_LOSS_H_

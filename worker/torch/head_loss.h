#ifndef ATOLL_WORKER_TORCH_HEAD_LOSS_H_
#define ATOLL_WORKER_TORCH_HEAD_LOSS_H_

#include <cstdint>

#include "core/run_options.h"
#include "worker/torch/libtorch.h"

namespace atl {

/// HeadLoss computes as many columns as a multiple of this.
inline constexpr int64_t kHeadColumns = 64;

/// The mean cross-entropy of the logits x * head^T, a float32 scalar, with gradients for x and head. For
/// devices with matrix units, where it has two advantages over log_softmax and nll_loss:
/// - The vocabulary 50257 of GPT-2 makes rows that the units cannot read aligned. It adds columns, up to a
///   multiple of kHeadColumns, without a probability and without a gradient.
/// - The gradient of the logits, softmax - onehot, is one pass over memory, and not five.
/// x: [rows, width]; head: [vocabulary, width], both bfloat16 or float32; targets: int64 [rows].
torch::Tensor HeadLoss(const torch::Tensor& x, const torch::Tensor& head, const torch::Tensor& targets);

/// The logits x * head^T, float32 [rows, vocabulary], computed in this precision. x and head: float32.
torch::Tensor HeadLogits(const torch::Tensor& x, const torch::Tensor& head, Precision precision);

/// The mean cross-entropy of HeadLogits: with HeadLoss in bfloat16 on a GPU. In float32 on the CPU, the
/// gradient of the logits is computed beside the loss and takes their place: one matrix of this size, and not
/// three. `targets`: int64, any shape, each below the vocabulary.
torch::Tensor NextTokenLoss(const torch::Tensor& x, const torch::Tensor& head, const torch::Tensor& targets,
                            Precision precision);

/// The same over the rows whose target is not below 0; 0 without any.
torch::Tensor CountedTokenLoss(const torch::Tensor& x, const torch::Tensor& head,
                               const torch::Tensor& targets, Precision precision);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_HEAD_LOSS_H_

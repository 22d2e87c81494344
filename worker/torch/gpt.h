#ifndef ATOLL_WORKER_TORCH_GPT_H_
#define ATOLL_WORKER_TORCH_GPT_H_

#include <torch/torch.h>

#include <cstdint>

#include "core/gpt_shape.h"
#include "core/run_options.h"
#include "worker/torch/flat_parameters.h"

namespace atl {

/// Whether dropout acts.
enum class GptMode { kTraining, kEvaluation };

/// GPT-2 (pre-norm transformer, learned positions, GELU in its tanh form, layer norm epsilon 1e-5) over
/// parameters that it does not own. With Precision::kBf16 matrix products, attention and GELU run in
/// bfloat16; the residual stream, the layer norms, the embeddings, the loss and the master weights stay
/// float32, as PyTorch's autocast would have it. Methods throw what LibTorch throws. Not thread-safe.
class Gpt {
 public:
  /// `parameters` was created from GptManifest(options) and outlives the model.
  Gpt(const GptOptions& options, Precision precision, FlatParameters& parameters);

  /// Fills the parameters as GPT-2 does: N(0, 0.02) for matrices, those that end a residual branch
  /// (attn.c_proj, mlp.c_proj) scaled by 1/sqrt(2*layers), biases 0, layer norm gains 1. The numbers are
  /// drawn on the CPU, so one LibTorch gives one seed the same model on every device.
  void Initialise(uint64_t seed);

  /// tokens: int64 [batch, time], time <= context. Returns float32 logits [batch*time, vocabulary].
  torch::Tensor Logits(const torch::Tensor& tokens, GptMode mode) const;

  /// Mean cross-entropy in nats per token, a float32 scalar. targets: int64 [batch, time].
  torch::Tensor Loss(const torch::Tensor& tokens, const torch::Tensor& targets, GptMode mode) const;

 private:
  torch::Tensor Attention(const torch::Tensor& x, const GptTensorIndex::Block& block, int64_t batch,
                          int64_t time, GptMode mode) const;
  torch::Tensor Mlp(const torch::Tensor& x, const GptTensorIndex::Block& block) const;
  torch::Tensor LayerNorm(const torch::Tensor& x, size_t gain, size_t bias) const;
  torch::Tensor Linear(const torch::Tensor& x, size_t weight, size_t bias) const;
  torch::Tensor Dropout(const torch::Tensor& x, GptMode mode) const;

  const GptOptions options_;
  const Precision precision_;
  FlatParameters& parameters_;
  const GptTensorIndex index_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_GPT_H_

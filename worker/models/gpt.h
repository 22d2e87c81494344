#ifndef ATOLL_WORKER_MODELS_GPT_H_
#define ATOLL_WORKER_MODELS_GPT_H_

#include <cstdint>

#include "core/gpt_shape.h"
#include "core/run_options.h"
#include "worker/models/reading.h"
#include "worker/torch/flat_parameters.h"
#include "worker/torch/language_model.h"
#include "worker/torch/libtorch.h"

namespace atl {

/// GPT-2 (pre-norm transformer, learned positions, GELU in its tanh form, layer norm epsilon 1e-5) over
/// parameters that it does not own. With Precision::kBf16 matrix products, attention and GELU run in
/// bfloat16; the residual stream, the layer norms, the embeddings, the loss and the master weights stay
/// float32, as PyTorch's autocast would have it.
class Gpt final : public LanguageModel {
 public:
  /// `parameters` was created from GptManifest(options) and outlives the model.
  Gpt(const GptOptions& options, Precision precision, FlatParameters& parameters,
      Activations activations = Activations::kKept);

  /// As GPT-2: N(0, 0.02) for matrices, those that end a residual branch (attn.c_proj, mlp.c_proj) scaled by
  /// 1/sqrt(2*layers), biases 0, layer norm gains 1. The numbers are drawn on the CPU.
  void Initialise(uint64_t seed) override;

  bool draws_random_numbers() const override { return options_.dropout > 0; }
  torch::Tensor Logits(const torch::Tensor& tokens, ModelMode mode) const override;
  KeyValueCache MakeCache(int64_t capacity) const override { return {options_.layers, capacity}; }
  torch::Tensor NextLogits(const torch::Tensor& tokens, KeyValueCache& cache) const override;
  torch::Tensor Loss(const torch::Tensor& tokens, const torch::Tensor& targets,
                     ModelMode mode) const override;
  torch::Tensor LossOfDocuments(const torch::Tensor& tokens, const torch::Tensor& targets,
                                const DocumentLayout& documents, ModelMode mode) const override;

 private:
  /// x: [batch*time, width]; the result has `x`'s shape.
  torch::Tensor Attention(const torch::Tensor& x, size_t layer, int64_t batch, const Reading& reading) const;
  torch::Tensor Mlp(const torch::Tensor& x, const GptTensorIndex::Block& block) const;
  torch::Tensor LayerNorm(const torch::Tensor& x, size_t gain, size_t bias) const;
  torch::Tensor Linear(const torch::Tensor& x, size_t weight, size_t bias) const;
  torch::Tensor Dropout(const torch::Tensor& x, ModelMode mode) const;
  torch::Tensor Block(const torch::Tensor& x, size_t layer, int64_t batch, const Reading& reading) const;
  /// The residual stream after all blocks, [batch*time, width].
  torch::Tensor Blocks(const torch::Tensor& tokens, const Reading& reading) const;
  torch::Tensor Head(const torch::Tensor& x) const;

  const GptOptions options_;
  const Precision precision_;
  const Activations activations_;
  FlatParameters& parameters_;
  const GptTensorIndex index_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_MODELS_GPT_H_

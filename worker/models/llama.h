#ifndef ATOLL_WORKER_MODELS_LLAMA_H_
#define ATOLL_WORKER_MODELS_LLAMA_H_

#include <cstdint>
#include <optional>

#include "core/llama_shape.h"
#include "core/run_options.h"
#include "worker/models/reading.h"
#include "worker/torch/flat_parameters.h"
#include "worker/torch/language_model.h"
#include "worker/torch/libtorch.h"
#include "worker/torch/rotary.h"

namespace atl {

/// The Llama family (pre-norm transformer with RMS norms, rotary positions, grouped heads and a gated MLP)
/// over parameters that it does not own. With Precision::kBf16 matrix products, attention and the MLP's gate
/// run in bfloat16; the residual stream, the norms, the rotation, the embedding, the loss and the master
/// weights stay float32, as PyTorch's autocast would have it.
class Llama final : public LanguageModel {
 public:
  /// `parameters` was created from LlamaManifest(options) and outlives the model.
  Llama(const LlamaOptions& options, Precision precision, FlatParameters& parameters,
        Activations activations = Activations::kKept);

  /// As Hugging Face's models: N(0, 0.02) for matrices, biases 0, gains 1. The numbers are drawn on the CPU.
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
  torch::Tensor RmsNorm(const torch::Tensor& x, size_t gain) const;
  torch::Tensor Linear(const torch::Tensor& x, size_t weight, std::optional<size_t> bias = {}) const;
  /// x: [batch*time, width]; the result has `x`'s shape.
  torch::Tensor Attention(const torch::Tensor& x, size_t layer, int64_t batch, const Reading& reading) const;
  torch::Tensor Mlp(const torch::Tensor& x, const LlamaTensorIndex::Block& block) const;
  torch::Tensor Block(const torch::Tensor& x, size_t layer, int64_t batch, const Reading& reading) const;
  /// The residual stream after all blocks, [batch*time, width].
  torch::Tensor Blocks(const torch::Tensor& tokens, const Reading& reading) const;
  torch::Tensor Head(const torch::Tensor& x) const;

  const LlamaOptions options_;
  const Precision precision_;
  const Activations activations_;
  FlatParameters& parameters_;
  const LlamaTensorIndex index_;
  const RotaryPositions positions_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_MODELS_LLAMA_H_

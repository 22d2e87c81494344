#ifndef ATOLL_CORE_LLAMA_SHAPE_H_
#define ATOLL_CORE_LLAMA_SHAPE_H_

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "core/llama_options.h"
#include "core/manifest.h"
#include "core/model_shape.h"

namespace atl {

/// The tensors of a Llama (Touvron et al., arXiv 2302.13971; Grattafiori et al., arXiv 2407.21783) in the
/// order and under the names that Hugging Face's LlamaForCausalLM, Qwen2ForCausalLM and Qwen3ForCausalLM give
/// them. Linear weights are [outputs, inputs]. With d the width, h the width of a head, H and K the heads of
/// queries and of keys and values, f the width of the MLP:
///
///   model.embed_tokens.weight                      [vocabulary, d]  embedding
///   model.layers.N.self_attn.q_proj.weight/bias    [H*h, d]         biases only with qkv_bias
///   model.layers.N.self_attn.{k,v}_proj.weight/bias [K*h, d]
///   model.layers.N.self_attn.o_proj.weight         [d, H*h]
///   model.layers.N.self_attn.{q,k}_norm.weight     [h]              only with qk_norm
///   model.layers.N.mlp.{gate,up}_proj.weight       [f, d]
///   model.layers.N.mlp.down_proj.weight            [d, f]
///   model.layers.N.input_layernorm.weight          [d]
///   model.layers.N.post_attention_layernorm.weight [d]
///   model.norm.weight                              [d]
///   lm_head.weight                                 [vocabulary, d]  only when embeddings are not tied
///
/// Requires options.heads > 0.
Manifest LlamaManifest(const LlamaOptions& options);

/// Where each tensor of the model stands in LlamaManifest(options).tensors. Members named *_bias are
/// meaningless without options.qkv_bias, q_norm and k_norm without options.qk_norm.
struct LlamaTensorIndex {
  explicit LlamaTensorIndex(const LlamaOptions& options);

  struct Block {
    size_t q, q_bias, k, k_bias, v, v_bias, o;
    size_t q_norm, k_norm;
    size_t gate, up, down;
    size_t input_norm, post_attention_norm;
  };
  size_t embedding;
  size_t norm;
  size_t lm_head;  // equals embedding when embeddings are tied
  Block block(size_t layer) const;

 private:
  size_t projection_;  // tensors of a projection of queries, keys or values: weight, or weight and bias
  size_t norms_;       // tensors of qk_norm
};

/// The shape of a model of the Llama family.
class LlamaShape final : public ModelShape {
 public:
  explicit LlamaShape(const LlamaOptions& options) : options_(options) {}

  std::string_view family() const override { return "llama"; }
  /// Heads that do not divide, heads of an odd width, and a scaling that is none.
  std::optional<ModelProblem> FindProblem() const override;
  /// All but dropout.
  std::vector<ModelSetting> FixedSettings() const override;
  std::optional<Manifest> MakeManifest() const override { return LlamaManifest(options_); }
  uint32_t blocks() const override { return options_.layers; }
  /// 6 operations per weight of a matrix product, and 12 * layers * H*h * context for attention scores
  /// (Chowdhery et al., arXiv 2204.02311, appendix B). Grouped heads share keys and values, but each computes
  /// its own scores. Looking a token up costs nothing; the output head does.
  double TrainingFlopsPerToken() const override;

 protected:
  /// What the backward pass needs of the forward pass, counted as Korthikanti et al. do (arXiv 2205.05198,
  /// section 4.1). With the letters above and e bytes per value (2 at 16 bits, 4 at 32), a block keeps
  ///   - of its two norms, which are float32 in both precisions: input, normalised input and output, 2 * (8 +
  ///     e) * d;
  ///   - of attention: queries, keys, values, what goes into the output projection, and the softmax of the
  ///     score matrix (where attention is not fused), e * (2*H*h + 2*K*h + H*context);
  ///   - of the norms of queries and keys, 8 * (H*h + K*h);
  ///   - of the MLP: gate, its SiLU, up, and their product, 4 * e * f.
  uint64_t BlockBytesPerToken(Precision precision) const override;
  /// The logits with their gradient, float32 in both precisions: the loss is computed there.
  uint64_t OutputBytesPerToken() const override { return 2 * sizeof(float) * uint64_t{options_.vocabulary}; }
  uint32_t width() const override { return options_.width; }

 private:
  std::optional<ModelProblem> FindProblemOfHeads() const;
  std::optional<ModelProblem> FindProblemOfScaling() const;

  const LlamaOptions options_;
};

}  // namespace atl

#endif  // ATOLL_CORE_LLAMA_SHAPE_H_

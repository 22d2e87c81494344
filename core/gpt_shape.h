#ifndef ATOLL_CORE_GPT_SHAPE_H_
#define ATOLL_CORE_GPT_SHAPE_H_

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "core/gpt_options.h"
#include "core/manifest.h"
#include "core/model_shape.h"

namespace atl {

/// The tensors of a GPT-2 (Radford et al. 2019) in the order and under the names that Hugging Face's
/// GPT2LMHeadModel gives them, so that an exported model loads there as it is. Linear weights are [inputs,
/// outputs] (its Conv1D):
///
///   transformer.wte.weight            [vocabulary, width]   embedding
///   transformer.wpe.weight            [context, width]      embedding
///   transformer.h.N.ln_1.weight/bias  [width]
///   transformer.h.N.attn.c_attn       [width, 3*width]      queries, keys, values side by side
///   transformer.h.N.attn.c_proj       [width, width]
///   transformer.h.N.ln_2.weight/bias  [width]
///   transformer.h.N.mlp.c_fc          [width, 4*width]
///   transformer.h.N.mlp.c_proj        [4*width, width]
///   transformer.ln_f.weight/bias      [width]
///   lm_head.weight                    [vocabulary, width]   only when embeddings are not tied
///
/// Without `bias` every *.bias is absent.
Manifest GptManifest(const GptOptions& options);

/// Where each tensor of the model stands in GptManifest(options).tensors. Members named *_bias are
/// meaningless without options.bias.
struct GptTensorIndex {
  explicit GptTensorIndex(const GptOptions& options);

  struct Block {
    size_t ln_1, ln_1_bias, c_attn, c_attn_bias, attn_proj, attn_proj_bias;
    size_t ln_2, ln_2_bias, c_fc, c_fc_bias, mlp_proj, mlp_proj_bias;
  };
  size_t wte, wpe;
  size_t ln_f, ln_f_bias;
  size_t lm_head;  // equals wte when embeddings are tied
  Block block(size_t layer) const;

 private:
  size_t stride_;  // tensors per kind: weight, or weight and bias
};

/// The shape of a GPT-2.
class GptShape final : public ModelShape {
 public:
  explicit GptShape(const GptOptions& options) : options_(options) {}

  std::string_view family() const override { return "gpt"; }
  /// Heads that do not divide the width.
  std::optional<ModelProblem> FindProblem() const override;
  /// All but dropout.
  std::vector<ModelSetting> FixedSettings() const override;
  std::optional<Manifest> MakeManifest() const override { return GptManifest(options_); }
  uint32_t blocks() const override { return options_.layers; }
  /// 6 operations per weight of a matrix product, and 12 * layers * width * context for attention scores
  /// (Chowdhery et al., arXiv 2204.02311, appendix B). Looking a token up costs nothing; the output head
  /// does.
  double TrainingFlopsPerToken() const override;

 protected:
  /// 34 bytes times width at 16 bits (Korthikanti et al., arXiv 2205.05198, eq. 2, without its attention term
  /// where attention is fused: here the score matrix is kept too, 5 * heads * context bytes), twice that
  /// at 32.
  uint64_t BlockBytesPerToken(Precision precision) const override;
  /// The logits with their gradient, float32 in both precisions: the loss is computed there.
  uint64_t OutputBytesPerToken() const override { return 2 * sizeof(float) * uint64_t{options_.vocabulary}; }
  uint32_t width() const override { return options_.width; }

 private:
  const GptOptions options_;
};

}  // namespace atl

#endif  // ATOLL_CORE_GPT_SHAPE_H_

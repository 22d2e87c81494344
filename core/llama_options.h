#ifndef ATOLL_CORE_LLAMA_OPTIONS_H_
#define ATOLL_CORE_LLAMA_OPTIONS_H_

#include <cstdint>

namespace atl {

/// How Llama 3.1 stretches its rotary positions to longer texts. Of a frequency with the wavelength l:
/// unchanged where l < original_context / high_freq_factor, divided by `factor` where l > original_context /
/// low_freq_factor, and between them a mean of both.
struct RopeScaling {
  double factor = 1;  // 1: none
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  uint32_t original_context = 8192;  // tokens
};

/// `model.llama` of a configuration: Llama, and the models that differ from it in one of these settings, such
/// as SmolLM2, Qwen2 and Qwen3 (core/llama_shape.h).
struct LlamaOptions {
  uint32_t layers = 0;
  uint32_t heads = 0;
  uint32_t kv_heads = 0;  // 0: heads
  uint32_t head_dim = 0;  // 0: width / heads
  uint32_t width = 0;
  uint32_t intermediate = 0;  // width of the MLP
  uint32_t context = 0;       // tokens
  uint32_t vocabulary = 0;    // tokens
  double rope_theta = 10000;
  RopeScaling rope_scaling = {};
  double rms_norm_epsilon = 1e-5;
  bool tied_embeddings = true;
  bool qkv_bias = false;  // Qwen2
  bool qk_norm = false;   // Qwen3
  double dropout = 0;     // of attention

  uint32_t key_value_heads() const { return kv_heads > 0 ? kv_heads : heads; }
  /// Requires heads > 0.
  uint32_t head_width() const { return head_dim > 0 ? head_dim : width / heads; }
};

}  // namespace atl

#endif  // ATOLL_CORE_LLAMA_OPTIONS_H_

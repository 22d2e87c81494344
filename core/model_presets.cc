#include "core/model_presets.h"

#include <algorithm>
#include <array>

namespace atl {
namespace {

GptOptions Gpt2(uint32_t layers, uint32_t heads, uint32_t width) {
  return {.layers = layers, .heads = heads, .width = width, .context = 1024, .vocabulary = 50257};
}

LlamaOptions SmolLm2(uint32_t layers, uint32_t heads, uint32_t width, uint32_t intermediate) {
  return {.layers = layers,
          .heads = heads,
          .kv_heads = heads / 3,
          .head_dim = 64,
          .width = width,
          .intermediate = intermediate,
          .context = 8192,
          .vocabulary = 49152,
          .rope_theta = 1e5};
}

LlamaOptions Qwen25() {
  return {.layers = 24,
          .heads = 14,
          .kv_heads = 2,
          .head_dim = 64,
          .width = 896,
          .intermediate = 4864,
          .context = 32768,
          .vocabulary = 151936,
          .rope_theta = 1e6,
          .rms_norm_epsilon = 1e-6,
          .qkv_bias = true};
}

LlamaOptions Qwen3() {
  return {.layers = 28,
          .heads = 16,
          .kv_heads = 8,
          .head_dim = 128,
          .width = 1024,
          .intermediate = 3072,
          .context = 40960,
          .vocabulary = 151936,
          .rope_theta = 1e6,
          .rms_norm_epsilon = 1e-6,
          .qk_norm = true};
}

LlamaOptions Llama32() {
  return {.layers = 16,
          .heads = 32,
          .kv_heads = 8,
          .head_dim = 64,
          .width = 2048,
          .intermediate = 8192,
          .context = 131072,
          .vocabulary = 128256,
          .rope_theta = 5e5,
          .rope_scaling = {.factor = 32}};
}

}  // namespace

std::span<const ModelPreset> ModelPresets() {
  static const std::array<ModelPreset, 7> presets = {{
      {"gpt2", ModelOptions(Gpt2(12, 12, 768))},
      {"gpt2-medium", ModelOptions(Gpt2(24, 16, 1024))},
      {"smollm2-135m", ModelOptions(SmolLm2(30, 9, 576, 1536))},
      {"smollm2-360m", ModelOptions(SmolLm2(32, 15, 960, 2560))},
      {"qwen2.5-0.5b", ModelOptions(Qwen25())},
      {"qwen3-0.6b", ModelOptions(Qwen3())},
      {"llama-3.2-1b", ModelOptions(Llama32())},
  }};
  return presets;
}

const ModelPreset* FindModelPreset(std::string_view name) {
  const auto presets = ModelPresets();
  const auto found = std::ranges::find(presets, name, &ModelPreset::name);
  return found == presets.end() ? nullptr : &*found;
}

}  // namespace atl

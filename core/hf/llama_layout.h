#ifndef ATOLL_CORE_HF_LLAMA_LAYOUT_H_
#define ATOLL_CORE_HF_LLAMA_LAYOUT_H_

#include <optional>

#include "core/hf/layout.h"
#include "core/llama_options.h"

namespace atl {

/// transformers' LlamaForCausalLM, Qwen2ForCausalLM (with biases of queries, keys and values) or
/// Qwen3ForCausalLM (with norms of queries and keys). The run's tensors have its names and its shapes
/// (core/llama_shape.h), so nothing is transposed. nullopt for biases and norms together, which no model
/// there has.
std::optional<HfLayout> LlamaLayout(const LlamaOptions& options);

}  // namespace atl

#endif  // ATOLL_CORE_HF_LLAMA_LAYOUT_H_

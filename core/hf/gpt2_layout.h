#ifndef ATOLL_CORE_HF_GPT2_LAYOUT_H_
#define ATOLL_CORE_HF_GPT2_LAYOUT_H_

#include "core/gpt_options.h"
#include "core/hf/layout.h"

namespace atl {

/// transformers' GPT2LMHeadModel. The run's tensors have its names and its shapes (core/gpt_shape.h), so
/// nothing is transposed. It has no model without biases: those are zeros there.
HfLayout Gpt2Layout(const GptOptions& options);

}  // namespace atl

#endif  // ATOLL_CORE_HF_GPT2_LAYOUT_H_

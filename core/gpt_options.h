#ifndef ATOLL_CORE_GPT_OPTIONS_H_
#define ATOLL_CORE_GPT_OPTIONS_H_

#include <cstdint>

namespace atl {

/// `model.gpt` of a configuration: a GPT-2 (core/gpt_shape.h).
struct GptOptions {
  uint32_t layers = 0;
  uint32_t heads = 0;
  uint32_t width = 0;
  uint32_t context = 0;     // tokens
  uint32_t vocabulary = 0;  // tokens
  bool tied_embeddings = true;
  double dropout = 0;
  bool bias = true;
};

}  // namespace atl

#endif  // ATOLL_CORE_GPT_OPTIONS_H_

#ifndef ATOLL_TESTS_TOKENIZER_SMALL_MODEL_H_
#define ATOLL_TESTS_TOKENIZER_SMALL_MODEL_H_

#include <initializer_list>
#include <string>
#include <string_view>

#include "tokenizer/bpe_model.h"

namespace atl {

/// The 256 bytes, then the given tokens, as tiktoken merges.
inline BpeModel SmallModel(std::initializer_list<std::string_view> tokens, Pattern pattern = Pattern::kGpt2) {
  BpeModel model;
  model.pattern = pattern;
  for (int byte = 0; byte < 256; ++byte) model.tokens.emplace_back(1, static_cast<char>(byte));
  for (const std::string_view token : tokens) model.tokens.emplace_back(token);
  return model;
}

}  // namespace atl

#endif  // ATOLL_TESTS_TOKENIZER_SMALL_MODEL_H_

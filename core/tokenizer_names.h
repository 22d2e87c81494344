#ifndef ATOLL_CORE_TOKENIZER_NAMES_H_
#define ATOLL_CORE_TOKENIZER_NAMES_H_

#include <cstdint>
#include <string_view>

namespace atl {

/// Tokenizers that Atoll has itself (worker/data/tokenizer.h makes them). A run may name another one: its
/// token files then come from elsewhere, and Atoll turns no text into tokens or back.
inline constexpr const char* kTokenizerNames[] = {"bytes"};
inline constexpr uint32_t kByteVocabulary = 256;
/// data.tokenizer of a run whose workers may have any data.
inline constexpr std::string_view kNoTokenizer = "none";

}  // namespace atl

#endif  // ATOLL_CORE_TOKENIZER_NAMES_H_

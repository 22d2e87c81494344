#ifndef ATOLL_CORE_TOKEN_WIDTH_H_
#define ATOLL_CORE_TOKEN_WIDTH_H_

#include <cstddef>
#include <cstdint>

namespace atl {

/// A token in memory. On disk it has the width of its file.
using TokenId = uint32_t;

/// How wide the tokens of a file are.
enum class TokenWidth : uint8_t { kTwoBytes, kFourBytes };

constexpr size_t BytesPerToken(TokenWidth width) {
  return width == TokenWidth::kTwoBytes ? sizeof(uint16_t) : sizeof(uint32_t);
}

/// The narrowest width that has every token of a vocabulary.
constexpr TokenWidth WidthFor(uint32_t vocabulary) {
  return vocabulary <= uint32_t{1} << 16 ? TokenWidth::kTwoBytes : TokenWidth::kFourBytes;
}

/// The largest vocabulary of a run and of its token files.
inline constexpr uint32_t kMaxVocabulary = uint32_t{1} << 20;

}  // namespace atl

#endif  // ATOLL_CORE_TOKEN_WIDTH_H_

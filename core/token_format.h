#ifndef ATOLL_CORE_TOKEN_FORMAT_H_
#define ATOLL_CORE_TOKEN_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/token_width.h"

// llm.c's token file (github.com/karpathy/llm.c, dev/data/data_common.py; modded-nanogpt writes the same):
// 256 little-endian int32 values (magic, version, number of tokens, zeros), then that many little-endian
// tokens.

namespace atl {

inline constexpr size_t kTokenHeaderWords = 256;
inline constexpr size_t kTokenHeaderBytes = kTokenHeaderWords * sizeof(int32_t);
static_assert(kTokenHeaderBytes == 1024);
/// A file holds no more than its int32 count can say.
inline constexpr uint64_t kMaxTokensPerFile = 0x7fffffff;

/// How the first words of a file say how wide its tokens are.
struct TokenFormat {
  int32_t magic;
  int32_t version;
  TokenWidth width;
};
/// uint16 tokens.
inline constexpr TokenFormat kNarrowTokens = {20240520, 1, TokenWidth::kTwoBytes};
/// uint32 tokens, which llm.c writes for Llama 3.
inline constexpr TokenFormat kWideTokens = {20240801, 7, TokenWidth::kFourBytes};

constexpr const TokenFormat& FormatOf(TokenWidth width) {
  return width == TokenWidth::kTwoBytes ? kNarrowTokens : kWideTokens;
}

/// nullopt: not a token file's.
constexpr std::optional<TokenFormat> FormatOfMagic(int32_t magic) {
  if (magic == kNarrowTokens.magic) return kNarrowTokens;
  if (magic == kWideTokens.magic) return kWideTokens;
  return std::nullopt;
}

}  // namespace atl

#endif  // ATOLL_CORE_TOKEN_FORMAT_H_

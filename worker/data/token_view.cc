#include "worker/data/token_view.h"

#include <bit>
#include <cstring>

namespace atl {
namespace {

static_assert(std::endian::native == std::endian::little);

}  // namespace

void PackTokens(std::span<const TokenId> tokens, TokenWidth width, std::vector<std::byte>& bytes) {
  bytes.resize(tokens.size() * BytesPerToken(width));
  if (width == TokenWidth::kFourBytes) {
    if (!tokens.empty()) std::memcpy(bytes.data(), tokens.data(), bytes.size());
    return;
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto narrow = static_cast<uint16_t>(tokens[i]);
    std::memcpy(bytes.data() + i * sizeof(narrow), &narrow, sizeof(narrow));
  }
}

void UnpackTokens(std::span<const std::byte> bytes, TokenWidth width, std::span<TokenId> out) {
  if (width == TokenWidth::kFourBytes) {
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size_bytes());
    return;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t narrow;
    std::memcpy(&narrow, bytes.data() + i * sizeof(narrow), sizeof(narrow));
    out[i] = narrow;
  }
}

}  // namespace atl

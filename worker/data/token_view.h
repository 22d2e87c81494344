#ifndef ATOLL_WORKER_DATA_TOKEN_VIEW_H_
#define ATOLL_WORKER_DATA_TOKEN_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/token_width.h"

namespace atl {

/// Tokens as they lie in a file: little-endian, of one width. Does not own them.
class TokenView {
 public:
  TokenView() = default;
  /// `bytes` is a whole number of tokens, aligned as such.
  TokenView(std::span<const std::byte> bytes, TokenWidth width) : bytes_(bytes), width_(width) {}

  uint64_t size() const { return bytes_.size() / BytesPerToken(width_); }
  bool empty() const { return bytes_.empty(); }
  TokenWidth width() const { return width_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  /// Requires first + count <= size().
  TokenView subspan(uint64_t first, uint64_t count) const {
    const size_t each = BytesPerToken(width_);
    return {bytes_.subspan(first * each, count * each), width_};
  }
  TokenView first(uint64_t count) const { return subspan(0, count); }

  /// Calls visit(span) with the tokens in the type of their width, for a pass over many of them.
  template <typename Visit>
  auto VisitAs(Visit visit) const {
    if (width_ == TokenWidth::kTwoBytes) {
      return visit(std::span(reinterpret_cast<const uint16_t*>(bytes_.data()), size()));
    }
    return visit(std::span(reinterpret_cast<const uint32_t*>(bytes_.data()), size()));
  }

  /// A copy.
  std::vector<TokenId> Tokens() const {
    return VisitAs([](const auto& tokens) { return std::vector<TokenId>(tokens.begin(), tokens.end()); });
  }

 private:
  std::span<const std::byte> bytes_;
  TokenWidth width_ = TokenWidth::kTwoBytes;
};

/// The tokens in the width of a file, into `bytes`. Requires that each fits.
void PackTokens(std::span<const TokenId> tokens, TokenWidth width, std::vector<std::byte>& bytes);

/// And back: out.size() tokens of `bytes`, which has as many.
void UnpackTokens(std::span<const std::byte> bytes, TokenWidth width, std::span<TokenId> out);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_TOKEN_VIEW_H_

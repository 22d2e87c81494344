#ifndef ATOLL_TOKENIZER_ADDED_TOKENS_H_
#define ATOLL_TOKENIZER_ADDED_TOKENS_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/bpe_model.h"

namespace atl {

/// Finds the added tokens that are not special in a text: the leftmost one, the longest of those that begin
/// there. Immutable and thread-safe.
class AddedTokens {
 public:
  /// Keeps those that are not special.
  explicit AddedTokens(const std::vector<AddedToken>& added);

  struct Match {
    size_t begin;
    size_t bytes;
    TokenId id;
  };
  /// The first one that begins in [from, stop); nullopt: none.
  std::optional<Match> Find(std::string_view text, size_t from, size_t stop) const;

  bool MayBegin(char byte) const { return !by_first_[static_cast<uint8_t>(byte)].empty(); }

 private:
  std::array<std::vector<AddedToken>, 256> by_first_;  // the longest first
  bool none_ = true;
};

}  // namespace atl

#endif  // ATOLL_TOKENIZER_ADDED_TOKENS_H_

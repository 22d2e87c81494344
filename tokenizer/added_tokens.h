#ifndef ATOLL_TOKENIZER_ADDED_TOKENS_H_
#define ATOLL_TOKENIZER_ADDED_TOKENS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe_model.h"

namespace atl {

/// Finds added tokens in a text: the leftmost one, the longest of those that begin there. Special tokens are
/// no matches, but hide those that begin inside of them, as in tokenizers. Immutable and thread-safe.
class AddedTokens {
 public:
  /// Keeps those with this value of `normalized`.
  AddedTokens(const std::vector<AddedToken>& added, bool normalized);

  struct Match {
    size_t begin;
    size_t bytes;
    TokenId id;
  };
  /// The first one that begins in [from, stop); nullopt: none.
  std::optional<Match> Find(std::string_view text, size_t from, size_t stop) const;

  bool MayBegin(char byte) const { return !lengths_[static_cast<uint8_t>(byte)].empty(); }

 private:
  struct Entry {
    TokenId id;
    bool special;
  };
  std::optional<Match> At(std::string_view text, size_t at, bool& special) const;

  std::map<std::string, Entry, std::less<>> entries_;
  std::array<std::vector<uint32_t>, 256> lengths_;  // of the tokens that begin with a byte, the longest first
  bool none_ = true;                                // all are special
};

}  // namespace atl

#endif  // ATOLL_TOKENIZER_ADDED_TOKENS_H_

#include "tokenizer/added_tokens.h"

#include <algorithm>

namespace atl {

AddedTokens::AddedTokens(const std::vector<AddedToken>& added, bool normalized) {
  for (const AddedToken& token : added) {
    if (token.normalized != normalized || token.content.empty()) continue;
    entries_.try_emplace(token.content, Entry{token.id, token.special});
    lengths_[static_cast<uint8_t>(token.content[0])].push_back(static_cast<uint32_t>(token.content.size()));
    none_ = none_ && token.special;
  }
  for (std::vector<uint32_t>& lengths : lengths_) {
    std::ranges::sort(lengths, std::greater<>());
    const auto rest = std::unique(lengths.begin(), lengths.end());
    lengths.erase(rest, lengths.end());
  }
}

std::optional<AddedTokens::Match> AddedTokens::At(std::string_view text, size_t at, bool& special) const {
  for (const uint32_t length : lengths_[static_cast<uint8_t>(text[at])]) {
    if (length > text.size() - at) continue;
    const auto found = entries_.find(text.substr(at, length));
    if (found == entries_.end()) continue;
    special = found->second.special;
    return Match{at, length, found->second.id};
  }
  return std::nullopt;
}

std::optional<AddedTokens::Match> AddedTokens::Find(std::string_view text, size_t from, size_t stop) const {
  if (none_) return std::nullopt;
  size_t at = from;
  while (at < stop) {
    bool special = false;
    const auto match = At(text, at, special);
    if (match && !special) return match;
    at += match ? match->bytes : 1;
  }
  return std::nullopt;
}

}  // namespace atl

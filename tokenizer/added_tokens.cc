#include "tokenizer/added_tokens.h"

#include <algorithm>

namespace atl {

AddedTokens::AddedTokens(const std::vector<AddedToken>& added) {
  for (const AddedToken& token : added) {
    if (token.special || token.content.empty()) continue;
    by_first_[static_cast<uint8_t>(token.content[0])].push_back(token);
    none_ = false;
  }
  for (auto& tokens : by_first_) {
    std::ranges::sort(
        tokens, [](const AddedToken& a, const AddedToken& b) { return a.content.size() > b.content.size(); });
  }
}

std::optional<AddedTokens::Match> AddedTokens::Find(std::string_view text, size_t from, size_t stop) const {
  if (none_) return std::nullopt;
  for (size_t at = from; at < stop; ++at) {
    for (const AddedToken& token : by_first_[static_cast<uint8_t>(text[at])]) {
      if (text.substr(at).starts_with(token.content)) return Match{at, token.content.size(), token.id};
    }
  }
  return std::nullopt;
}

}  // namespace atl

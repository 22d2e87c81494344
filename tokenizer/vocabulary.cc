#include "tokenizer/vocabulary.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/status.h"

namespace atl {

absl::StatusOr<std::unique_ptr<Vocabulary>> Vocabulary::Create(BpeModel& model) {
  std::unique_ptr<Vocabulary> made(new Vocabulary());
  made->tokens_ = std::exchange(model.tokens, {});
  ATOLL_RETURN_IF_ERROR(made->Index());
  if (model.order == MergeOrder::kByResult) {
    made->AddPairs();
    return made;
  }
  made->pairs_ = std::make_unique<PairTable>(model.merges.size());
  for (uint32_t rank = 0; rank < model.merges.size(); ++rank) {
    const MergeRule& rule = model.merges[rank];
    made->pairs_->Insert(rule.left, rule.right, MakeMergeKey(rank, rule.result));
  }
  model.merges = {};
  return made;
}

absl::Status Vocabulary::Index() {
  if (tokens_.size() > kMaxVocabulary) {
    return absl::InvalidArgumentError(
        absl::StrFormat("has token %d, and Atoll reads ids below %d", tokens_.size() - 1, kMaxVocabulary));
  }
  ids_.reserve(tokens_.size());
  for (TokenId id = 0; id < tokens_.size(); ++id) {
    const std::string& bytes = tokens_[id];
    if (bytes.empty()) continue;
    if (bytes.size() > kMaxTokenBytes) {
      return absl::InvalidArgumentError(
          absl::StrFormat("has token %d with %d bytes, and Atoll reads tokens of at most %d bytes", id,
                          bytes.size(), kMaxTokenBytes));
    }
    const auto [at, added] = ids_.try_emplace(bytes, id);
    if (!added) {
      return absl::InvalidArgumentError(
          absl::StrFormat("has the same bytes for the tokens %d and %d", at->second, id));
    }
    longest_ = std::max(longest_, bytes.size());
    if (bytes.size() == 1) bytes_[static_cast<uint8_t>(bytes[0])] = id;
  }
  return absl::OkStatus();
}

void Vocabulary::AddPairs() {
  std::vector<std::pair<MergeRule, uint32_t>> found;
  for (TokenId id = 0; id < tokens_.size(); ++id) {
    const std::string_view bytes = tokens_[id];
    for (size_t split = 1; split < bytes.size(); ++split) {
      const auto left = ids_.find(bytes.substr(0, split));
      if (left == ids_.end()) continue;
      const auto right = ids_.find(bytes.substr(split));
      if (right != ids_.end()) found.push_back({{left->second, right->second, id}, id});
    }
  }
  pairs_ = std::make_unique<PairTable>(found.size());
  for (const auto& [rule, rank] : found) {
    pairs_->Insert(rule.left, rule.right, MakeMergeKey(rank, rule.result));
  }
}

std::optional<TokenId> Vocabulary::Find(std::string_view bytes) const {
  const auto found = ids_.find(bytes);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

bool Vocabulary::HasAllBytes() const {
  return std::ranges::all_of(bytes_, [](const auto& id) { return id.has_value(); });
}

}  // namespace atl

#include "tokenizer/bpe_tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "core/foreign_name.h"
#include "tokenizer/tokenizer_name.h"

namespace atl {
namespace {

bool IsAsciiLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

absl::Status CheckAdded(const std::vector<AddedToken>& added, const Vocabulary& tokens) {
  if (added.size() > kMaxAddedTokens) {
    return absl::InvalidArgumentError(
        absl::StrFormat("has %d added tokens, and Atoll reads at most %d", added.size(), kMaxAddedTokens));
  }
  absl::flat_hash_map<TokenId, std::string_view> ids;
  absl::flat_hash_map<std::string_view, TokenId> contents;
  for (const AddedToken& token : added) {
    const std::string name = ForeignName(token.content);
    if (token.content.empty() || token.content.size() > kMaxTokenBytes) {
      return absl::InvalidArgumentError(
          absl::StrFormat("has an added token '%s' of %d bytes; 1 to %d are allowed", name,
                          token.content.size(), kMaxTokenBytes));
    }
    const std::string_view bytes = token.id < tokens.size() ? tokens.Bytes(token.id) : std::string_view();
    if (token.id >= kMaxVocabulary || (!bytes.empty() && bytes != token.content)) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "has an added token '%s' with the id %d, which another token has or which is not below %d", name,
          token.id, kMaxVocabulary));
    }
    if (!ids.try_emplace(token.id, token.content).second ||
        !contents.try_emplace(token.content, token.id).second) {
      return absl::InvalidArgumentError(
          absl::StrFormat("names the added token '%s' or its id %d twice", name, token.id));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<BpeTokenizer>> BpeTokenizer::Create(BpeModel model) {
  const std::string name = TokenizerName(model);
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<Vocabulary> tokens, Vocabulary::Create(model));
  ATOLL_RETURN_IF_ERROR(CheckAdded(model.added, *tokens));
  return std::unique_ptr<BpeTokenizer>(new BpeTokenizer(model, std::move(tokens), name));
}

BpeTokenizer::BpeTokenizer(const BpeModel& model, std::unique_ptr<Vocabulary> tokens, const std::string& name)
    : pattern_(model.pattern),
      whole_pieces_(model.whole_pieces),
      nfc_(model.nfc),
      unknown_(model.unknown),
      tokens_(std::move(tokens)),
      added_(model.added, /*normalized=*/false),
      added_later_(model.added, /*normalized=*/true),
      added_by_id_(model.added),
      name_(name),
      vocabulary_size_(static_cast<uint32_t>(tokens_->size())) {
  std::ranges::sort(added_by_id_, {}, &AddedToken::id);
  for (const AddedToken& token : added_by_id_) {
    vocabulary_size_ = std::max(vocabulary_size_, token.id + 1);
    if (token.content == "<|endoftext|>" || token.content == "<|end_of_text|>") end_of_text_ = token.id;
  }
}

bool BpeTokenizer::lossless() const { return tokens_->HasAllBytes() && !nfc_; }

// A line end before an ASCII letter is the end of a piece in every pattern, of an invalid sequence and of
// what NFC composes. Added tokens with a line end are rejected when they are loaded.
size_t BpeTokenizer::LastCut(std::string_view text) const {
  for (size_t cut = text.size(); cut-- > 1;) {
    if (text[cut - 1] == '\n' && IsAsciiLetter(text[cut]) && !added_.MayBegin(text[cut]) &&
        !added_later_.MayBegin(text[cut])) {
      return cut;
    }
  }
  return 0;
}

std::string BpeTokenizer::Decode(std::span<const TokenId> tokens) const {
  std::string text;
  text.reserve(tokens.size() * 4);
  for (const TokenId id : tokens) {
    if (id < tokens_->size() && !tokens_->Bytes(id).empty()) {
      text += tokens_->Bytes(id);
      continue;
    }
    const auto added = std::ranges::lower_bound(added_by_id_, id, {}, &AddedToken::id);
    text += added != added_by_id_.end() && added->id == id ? added->content : "\xEF\xBF\xBD";
  }
  return text;
}

}  // namespace atl

#ifndef ATOLL_TOKENIZER_BPE_TOKENIZER_H_
#define ATOLL_TOKENIZER_BPE_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/token_width.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe_model.h"
#include "tokenizer/vocabulary.h"

namespace atl {

/// Byte pair encoding as tiktoken and tokenizers do it, over a vocabulary from their files
/// (tokenizer/load.h). docs/reference/tokenizers.md says which files. Immutable and thread-safe. BpeEncoder
/// turns text into tokens.
class BpeTokenizer {
 public:
  /// InvalidArgument, with a text that continues "FILE ...".
  static absl::StatusOr<std::unique_ptr<BpeTokenizer>> Create(BpeModel model);

  /// "gpt2", "cl100k", "o200k", "llama3", "qwen2" or "smollm" if the vocabulary is the published one; else
  /// the pattern's name and the first digits of the vocabulary's fingerprint: "gpt2-306cd27f".
  const std::string& name() const { return name_; }
  Pattern pattern() const { return pattern_; }
  /// The largest id + 1, with special tokens.
  uint32_t vocabulary() const { return vocabulary_size_; }
  /// The token between documents: <|endoftext|> or <|end_of_text|>; nullopt: none.
  std::optional<TokenId> end_of_text() const { return end_of_text_; }
  /// Whether every text comes back from its tokens: there is a token for each byte, and no normalization.
  bool lossless() const;

  /// The last place where a text may be cut: the tokens of both sides are those of the whole text, whatever
  /// follows. The left side must see the letter after the cut (BpeEncoder::EncodePart). 0: there is no such
  /// place.
  size_t LastCut(std::string_view text) const;

  /// The bytes of the tokens, with those of special tokens. Ids without a token become U+FFFD.
  std::string Decode(std::span<const TokenId> tokens) const;

 private:
  friend class BpeEncoder;
  BpeTokenizer(const BpeModel& model, std::unique_ptr<Vocabulary> tokens, const std::string& name);

  const Pattern pattern_;
  const bool whole_pieces_;
  const bool nfc_;
  const std::optional<TokenId> unknown_;
  const std::unique_ptr<Vocabulary> tokens_;
  const AddedTokens added_;
  const AddedTokens added_later_;  // found between the others
  std::vector<AddedToken> added_by_id_;
  const std::string name_;
  uint32_t vocabulary_size_ = 0;
  std::optional<TokenId> end_of_text_;
};

}  // namespace atl

#endif  // ATOLL_TOKENIZER_BPE_TOKENIZER_H_

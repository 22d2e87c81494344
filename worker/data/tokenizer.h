#ifndef ATOLL_WORKER_DATA_TOKENIZER_H_
#define ATOLL_WORKER_DATA_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/token_width.h"
#include "core/tokenizer_names.h"

namespace atl {

/// Text to tokens and back. Implementations are immutable and thread-safe.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::string_view name() const = 0;
  virtual uint32_t vocabulary() const = 0;
  /// Replaces `tokens` with those of `text`.
  virtual void Encode(std::string_view text, std::vector<TokenId>& tokens) const = 0;
  /// Encode for the front of a text of which more follows: replaces `tokens` with those that no later text
  /// changes, and returns how many bytes they are. Pass the rest again, before what follows, and the end of
  /// the text to Encode.
  virtual size_t EncodePrefix(std::string_view text, std::vector<TokenId>& tokens) const {
    Encode(text, tokens);
    return text.size();
  }
  /// Tokens outside the vocabulary become U+FFFD.
  virtual std::string Decode(std::span<const TokenId> tokens) const = 0;
};

/// One token per byte, vocabulary 256: no files, any language, any text.
class ByteTokenizer final : public Tokenizer {
 public:
  std::string_view name() const override { return "bytes"; }
  uint32_t vocabulary() const override { return kByteVocabulary; }
  void Encode(std::string_view text, std::vector<TokenId>& tokens) const override;
  std::string Decode(std::span<const TokenId> tokens) const override;
};

/// InvalidArgument, listing the known ones, for an unknown name.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(std::string_view name);

/// A tokenizer from its files (tokenizer/load.h, with the same errors). Invalid UTF-8 becomes U+FFFD. One
/// call at a time encodes.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeFileTokenizer(const std::string& path,
                                                             const std::string& pattern);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_TOKENIZER_H_

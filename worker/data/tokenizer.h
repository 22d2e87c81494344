#ifndef ATOLL_WORKER_DATA_TOKENIZER_H_
#define ATOLL_WORKER_DATA_TOKENIZER_H_

#include <cstdint>
#include <memory>
#include <optional>
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
  /// The last place where a text may be cut so that both sides have the tokens of the whole, and 0 if there
  /// is none. Behind a cut there is text.
  virtual size_t LastCut(std::string_view text) const = 0;
  /// Replaces `tokens` with those of text[0, end). `end` is a cut or the end of the text.
  virtual void EncodePart(std::string_view text, size_t end, std::vector<TokenId>& tokens) const = 0;
  /// The token that ends a document; nullopt: there is none.
  virtual std::optional<TokenId> end_of_text() const = 0;
  /// Whether it gives back every byte of a text that is not UTF-8.
  virtual bool any_encoding() const { return false; }
  /// Tokens outside the vocabulary become U+FFFD.
  virtual std::string Decode(std::span<const TokenId> tokens) const = 0;
};

/// One token per byte, vocabulary 256: no files, any language, any text.
class ByteTokenizer final : public Tokenizer {
 public:
  std::string_view name() const override { return "bytes"; }
  uint32_t vocabulary() const override { return kByteVocabulary; }
  void Encode(std::string_view text, std::vector<TokenId>& tokens) const override;
  size_t LastCut(std::string_view text) const override;
  void EncodePart(std::string_view text, size_t end, std::vector<TokenId>& tokens) const override {
    Encode(text.substr(0, end), tokens);
  }
  std::optional<TokenId> end_of_text() const override { return std::nullopt; }
  bool any_encoding() const override { return true; }
  std::string Decode(std::span<const TokenId> tokens) const override;
};

/// InvalidArgument, listing the known ones, for an unknown name.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(std::string_view name);

/// A tokenizer from its files (tokenizer/load.h, with the same errors). Invalid UTF-8 becomes U+FFFD.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeFileTokenizer(const std::string& path,
                                                             const std::string& pattern);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_TOKENIZER_H_

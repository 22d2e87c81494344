#ifndef ATOLL_TOKENIZER_BPE_ENCODER_H_
#define ATOLL_TOKENIZER_BPE_ENCODER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe_tokenizer.h"
#include "tokenizer/piece_merger.h"
#include "tokenizer/word_cache.h"

namespace atl {

enum class InvalidUtf8 : uint8_t {
  kReplace,  // U+FFFD for each maximal invalid part, as Python's decode(errors="replace") before the oracles
             // see the text
  kKeep,  // the tokens of its bytes, so that Decode gives the same bytes; for merges they count like U+FFFD
};

/// Turns text into tokens. Holds a cache and scratch memory of about 5 MiB, so keep one for each thread. Not
/// thread-safe; borrows the tokenizer.
class BpeEncoder {
 public:
  explicit BpeEncoder(const BpeTokenizer& tokenizer, InvalidUtf8 invalid = InvalidUtf8::kReplace);

  /// Appends the tokens of a whole text. Special tokens in the text are ordinary text; other added tokens are
  /// found. Takes linear time on the worst text of n bytes, and up to 40 bytes of memory a byte of its
  /// longest piece.
  void Encode(std::string_view text, std::vector<TokenId>& tokens);

  /// Encode for the next part of a text that arrives in parts: appends the tokens that no later text changes,
  /// and returns how many bytes they are. Pass the other bytes again, before what follows. The last part goes
  /// to Encode.
  size_t EncodePrefix(std::string_view text, std::vector<TokenId>& tokens);

  /// Appends the tokens of text[0, end), where `end` is a cut (BpeTokenizer::LastCut) or the end of the text.
  /// So different threads can encode the parts of one text.
  void EncodePart(std::string_view text, size_t end, std::vector<TokenId>& tokens);

 private:
  void EncodeSegment(std::string_view text, size_t stop, std::vector<TokenId>& tokens);
  void EncodePiece(std::string_view piece, const char* readable_end);
  void MergePiece(std::string_view piece);
  TokenId* Room(size_t tokens);

  const BpeTokenizer& tokenizer_;
  const InvalidUtf8 invalid_;
  const size_t longest_;  // bytes of a piece that may be a token as a whole
  PieceMerger merger_;
  WordCache cache_;
  std::vector<TokenId> made_;  // tokens that wait, and room for more
  size_t count_ = 0;
  std::string replaced_;
  std::string normalized_;
};

}  // namespace atl

#endif  // ATOLL_TOKENIZER_BPE_ENCODER_H_

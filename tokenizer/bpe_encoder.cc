#include "tokenizer/bpe_encoder.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "tokenizer/nfc.h"
#include "tokenizer/scanner.h"
#include "tokenizer/utf8.h"

namespace atl {
namespace {

// Places in a piece are 32-bit numbers. No text has such a piece; one that does is cut.
constexpr size_t kMaxPiece = size_t{1} << 30;

// Tokens that wait in the encoder, so that they stay in the cache.
constexpr size_t kFlush = 4096;

/// Appends the ids of the added tokens in text[0, stop), and calls `encode` with each part between them and
/// the length of it that counts.
template <typename Encode>
void EncodeBetween(const AddedTokens& added, std::string_view text, size_t stop, std::vector<TokenId>& tokens,
                   const Encode& encode) {
  size_t at = 0;
  while (at < stop) {
    const auto found = added.Find(text, at, stop);
    if (!found) break;
    if (found->begin > at) encode(text.substr(at, found->begin - at), found->begin - at);
    tokens.push_back(found->id);
    at = found->begin + found->bytes;
  }
  if (at < stop) encode(text.substr(at), stop - at);
}

}  // namespace

BpeEncoder::BpeEncoder(const BpeTokenizer& tokenizer, InvalidUtf8 invalid)
    : tokenizer_(tokenizer),
      invalid_(invalid),
      longest_(tokenizer.whole_pieces_ ? tokenizer.tokens_->longest() : 0),
      merger_(*tokenizer.tokens_, tokenizer.unknown_),
      made_(2 * kFlush) {}

void BpeEncoder::Encode(std::string_view text, std::vector<TokenId>& tokens) {
  EncodePart(text, text.size(), tokens);
}

size_t BpeEncoder::EncodePrefix(std::string_view text, std::vector<TokenId>& tokens) {
  const size_t cut = tokenizer_.LastCut(text);
  if (cut > 0) EncodePart(text, cut, tokens);
  return cut;
}

void BpeEncoder::EncodePart(std::string_view text, size_t stop, std::vector<TokenId>& tokens) {
  // The letter after a cut stays visible, because white space before a letter is divided otherwise than at
  // the end of a text.
  if (stop < text.size()) text = text.substr(0, stop + 1);
  if (invalid_ == InvalidUtf8::kReplace && !IsUtf8(text)) {
    replaced_.clear();
    AppendReplaced(text.substr(0, stop), replaced_);
    const size_t end = replaced_.size();
    replaced_.append(text.substr(stop));
    text = replaced_;
    stop = end;
  }
  EncodeBetween(tokenizer_.added_, text, stop, tokens, [&](std::string_view part, size_t end) {
    EncodeBetween(tokenizer_.added_later_, part, end, tokens,
                  [&](std::string_view rest, size_t rest_end) { EncodeSegment(rest, rest_end, tokens); });
  });
}

void BpeEncoder::EncodeSegment(std::string_view text, size_t stop, std::vector<TokenId>& tokens) {
  if (tokenizer_.nfc_ && NeedsNfc(text)) {
    normalized_.clear();
    ToNfc(text.substr(0, stop), normalized_);
    const size_t end = normalized_.size();
    normalized_.append(text.substr(stop));
    text = normalized_;
    stop = end;
  }
  count_ = 0;
  Scanner scanner(tokenizer_.pattern_, text);
  const char* const readable_end = text.data() + text.size();
  const char* const end = text.data() + stop;
  std::string_view piece;
  const auto flush = [&] {
    tokens.insert(tokens.end(), made_.begin(), made_.begin() + static_cast<ptrdiff_t>(count_));
    count_ = 0;
  };
  while (scanner.at() < end && scanner.Next(piece)) {
    EncodePiece(piece, readable_end);
    if (count_ >= kFlush) flush();
  }
  flush();
}

TokenId* BpeEncoder::Room(size_t tokens) {
  if (made_.size() - count_ < tokens) made_.resize(std::max(2 * made_.size(), count_ + tokens));
  return made_.data() + count_;
}

void BpeEncoder::EncodePiece(std::string_view piece, const char* readable_end) {
  if (piece.size() > WordCache::kMaxBytes || piece.size() < 2) {
    while (piece.size() > kMaxPiece) {
      MergePiece(piece.substr(0, kMaxPiece));
      piece.remove_prefix(kMaxPiece);
    }
    MergePiece(piece);
    return;
  }
  const WordCache::Key key = WordCache::MakeKey(piece, readable_end);
  const std::span<const TokenId> cached = cache_.Find(key);
  if (!cached.empty()) {
    TokenId* const out = Room(WordCache::kMaxTokens);
    // All of the slot, because a copy of a fixed length is faster.
    std::memcpy(out, cached.data(), WordCache::kMaxTokens * sizeof(TokenId));
    count_ += cached.size();
    return;
  }
  const size_t before = count_;
  MergePiece(piece);
  const size_t made = count_ - before;
  if (made > 0 && made <= WordCache::kMaxTokens) {
    cache_.Insert(key, std::span<const TokenId>(made_).subspan(before, made));
  }
}

void BpeEncoder::MergePiece(std::string_view piece) {
  TokenId* const out = Room(piece.size());
  if (piece.size() <= longest_) {
    if (const auto whole = tokenizer_.tokens_->Find(piece)) {
      *out = *whole;
      ++count_;
      return;
    }
  }
  count_ += merger_.Merge(piece, out);
}

}  // namespace atl

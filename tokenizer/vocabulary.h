#ifndef ATOLL_TOKENIZER_VOCABULARY_H_
#define ATOLL_TOKENIZER_VOCABULARY_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "core/token_width.h"
#include "tokenizer/bpe_model.h"
#include "tokenizer/pair_table.h"

namespace atl {

/// Tokens by bytes and by id, and what merges to what. Immutable and thread-safe.
class Vocabulary {
 public:
  /// Consumes the tokens and rules of the model. InvalidArgument, with a text that continues "FILE ...": two
  /// tokens are equal, an id is too large, or single bytes have no token where one is needed.
  static absl::StatusOr<std::unique_ptr<Vocabulary>> Create(BpeModel& model);

  /// Not the added ones.
  std::optional<TokenId> Find(std::string_view bytes) const;
  /// Of an id below size(); empty: none.
  std::string_view Bytes(TokenId id) const { return tokens_[id]; }
  /// The largest id + 1, without added tokens.
  size_t size() const { return tokens_.size(); }
  size_t longest() const { return longest_; }
  const PairTable& pairs() const { return *pairs_; }
  /// Of one byte; nullopt: none.
  std::optional<TokenId> OfByte(uint8_t byte) const { return bytes_[byte]; }
  bool HasAllBytes() const;

 private:
  Vocabulary() = default;
  absl::Status Index();
  void AddPairs();

  std::vector<std::string> tokens_;
  absl::flat_hash_map<std::string_view, TokenId> ids_;
  std::array<std::optional<TokenId>, 256> bytes_;
  std::unique_ptr<PairTable> pairs_;
  size_t longest_ = 0;
};

}  // namespace atl

#endif  // ATOLL_TOKENIZER_VOCABULARY_H_

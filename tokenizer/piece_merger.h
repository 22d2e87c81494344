#ifndef ATOLL_TOKENIZER_PIECE_MERGER_H_
#define ATOLL_TOKENIZER_PIECE_MERGER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/token_width.h"
#include "tokenizer/merge_queue.h"
#include "tokenizer/vocabulary.h"

namespace atl {

/// Byte pair encoding of one piece: the two neighbours of the smallest rank merge, the leftmost first among
/// equals, until none can. Short pieces search for the smallest in an array. Long ones keep a
/// queue (tokenizer/merge_queue.h) and take linear time. Not thread-safe; borrows the vocabulary.
class PieceMerger {
 public:
  /// `unknown` stands for bytes without a token; without it they are left out.
  PieceMerger(const Vocabulary& vocabulary, std::optional<TokenId> unknown);

  /// Writes the tokens to `out`, which has room for as many as the piece has bytes, and returns how many. The
  /// piece has less than 2^32 bytes.
  size_t Merge(std::string_view piece, TokenId* out);

 private:
  size_t Start(std::string_view piece);
  size_t MergeShort(size_t count, TokenId* out);
  size_t MergeLong(size_t count, TokenId* out);
  void Push(MergeKey merge, uint32_t at);

  const PairTable& pairs_;
  std::vector<TokenId> first_;         // token of each byte; kNothing: none
  std::vector<MergeKey> first_pairs_;  // merge of each pair of bytes
  std::vector<TokenId> tokens_;
  std::vector<MergeKey> merges_;  // of a token and the next one
  std::vector<uint32_t> next_;
  std::vector<uint32_t> previous_;
  MergeQueue queue_;  // rank << 32 | place
};

}  // namespace atl

#endif  // ATOLL_TOKENIZER_PIECE_MERGER_H_

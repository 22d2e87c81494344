#ifndef ATOLL_TOKENIZER_PAIR_TABLE_H_
#define ATOLL_TOKENIZER_PAIR_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/token_width.h"

namespace atl {

/// What two neighbours merge to: rank << 32 | id. A smaller rank comes first.
using MergeKey = uint64_t;
inline constexpr MergeKey kNoMerge = ~MergeKey{0};

constexpr MergeKey MakeMergeKey(uint32_t rank, TokenId id) { return MergeKey{rank} << 32 | id; }
constexpr uint32_t RankOf(MergeKey key) { return static_cast<uint32_t>(key >> 32); }
constexpr TokenId ResultOf(MergeKey key) { return static_cast<TokenId>(key); }

/// The merges of pairs of tokens: open addressing, at most half full, 16 bytes a slot. Immutable after the
/// inserts.
class PairTable {
 public:
  /// Room for `pairs` inserts.
  explicit PairTable(size_t pairs) {
    size_t slots = 16;
    while (slots < 2 * pairs) slots *= 2;
    slots_.resize(slots);
    shift_ = 64;
    for (size_t n = slots; n > 1; n /= 2) --shift_;
  }

  /// Replaces the merge of an equal pair.
  void Insert(TokenId left, TokenId right, MergeKey merge) {
    Slot& slot = slots_[Place(Key(left, right))];
    slot = {Key(left, right), merge};
  }

  /// kNoMerge: the two do not merge.
  MergeKey Find(TokenId left, TokenId right) const { return slots_[Place(Key(left, right))].merge; }

 private:
  struct Slot {
    uint64_t pair = ~uint64_t{0};  // empty
    MergeKey merge = kNoMerge;
  };
  static constexpr uint64_t Key(TokenId left, TokenId right) { return uint64_t{left} << 32 | right; }

  /// The slot of a pair, or the empty one where it belongs.
  size_t Place(uint64_t key) const {
    // Both halves reach the upper bits: 32-bit ids would else meet in few slots.
    size_t at = ((key ^ key >> 29) * 0x9e3779b97f4a7c15u) >> shift_;
    while (slots_[at].pair != key && slots_[at].pair != ~uint64_t{0}) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  std::vector<Slot> slots_;
  int shift_;
};

}  // namespace atl

#endif  // ATOLL_TOKENIZER_PAIR_TABLE_H_

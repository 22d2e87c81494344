#ifndef ATOLL_TOKENIZER_WORD_CACHE_H_
#define ATOLL_TOKENIZER_WORD_CACHE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "core/token_width.h"

namespace atl {

/// The tokens of pieces that came before. A new piece replaces the one in its slot. One cache line a slot, 2
/// MiB in all. Not thread-safe.
class WordCache {
 public:
  static constexpr size_t kMaxBytes = 31;
  static constexpr size_t kMaxTokens = 7;

  /// A piece of 1 to kMaxBytes bytes, padded with zeros; the last byte is its length.
  using Key = std::array<uint64_t, 4>;

  /// `readable_end`: up to here memory may be read, also beyond the piece.
  static Key MakeKey(std::string_view piece, const char* readable_end) {
    Key key{};
    const size_t bytes = piece.size();
    if (readable_end - piece.data() >= static_cast<ptrdiff_t>(sizeof(key))) {
      // Whole words and a mask, instead of a copy of variable length.
      const size_t words = (bytes - 1) / 8;
      for (size_t i = 0; i <= words; ++i) std::memcpy(&key[i], piece.data() + 8 * i, 8);
      key[words] &= ~uint64_t{0} >> (8 * (8 * words + 8 - bytes));
    } else {
      std::memcpy(key.data(), piece.data(), bytes);
    }
    key[3] |= uint64_t{bytes} << 56;
    return key;
  }

  WordCache() : slots_(size_t{1} << kBits) {}

  /// Empty: not there.
  std::span<const TokenId> Find(const Key& key) const {
    const Slot& slot = slots_[Place(key)];
    if (!Equal(slot.key, key)) return {};
    return {slot.tokens.data(), slot.count};
  }

  /// At most kMaxTokens tokens.
  void Insert(const Key& key, std::span<const TokenId> tokens) {
    Slot& slot = slots_[Place(key)];
    slot.key = key;
    slot.count = static_cast<uint32_t>(tokens.size());
    std::memcpy(slot.tokens.data(), tokens.data(), tokens.size_bytes());
  }

 private:
  static constexpr int kBits = 16;
  struct alignas(64) Slot {
    Key key{};  // length 0: empty
    std::array<TokenId, kMaxTokens> tokens{};
    uint32_t count = 0;
  };
  static_assert(sizeof(Slot) == 64);

  // Without branches and without memcmp: short keys are compared as fast as they are loaded.
  static bool Equal(const Key& a, const Key& b) {
    return ((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3])) == 0;
  }
  static size_t Place(const Key& key) {
    const uint64_t mixed =
        (key[0] ^ key[1] * 0xff51afd7ed558ccdu ^ key[2] * 0xc4ceb9fe1a85ec53u ^ key[3] * 0xd6e8feb86659fd93u);
    return ((mixed ^ mixed >> 32) * 0x9e3779b97f4a7c15u) >> (64 - kBits);
  }

  std::vector<Slot> slots_;
};

}  // namespace atl

#endif  // ATOLL_TOKENIZER_WORD_CACHE_H_

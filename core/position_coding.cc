#include "core/position_coding.h"

#include <array>
#include <bit>
#include <cstring>

namespace atl {
namespace {

constexpr size_t kMostHeld = 128;
constexpr size_t kMostUpperWords = (kMostHeld + 4096 / 32) / 64;
constexpr size_t kMostLowerBytes = kMostHeld * 6 / 8;

struct Words {
  std::array<uint64_t, kMostUpperWords> upper{};
  std::array<std::byte, kMostLowerBytes + sizeof(uint64_t)> lower{};  // so that whole words can be read

  Words(const PositionCoding& coding, const std::byte* in) {
    std::memcpy(upper.data(), in, coding.upper_bytes());
    std::memcpy(lower.data(), in + coding.upper_bytes(), coding.lower_bytes());
  }

  uint32_t Low(uint32_t index, uint32_t bits) const {
    uint64_t word;
    const uint32_t at = index * bits;
    std::memcpy(&word, lower.data() + at / 8, sizeof(word));
    return static_cast<uint32_t>(word >> (at % 8)) & ((1u << bits) - 1);
  }

  uint32_t bits() const {
    uint32_t count = 0;
    for (const uint64_t word : upper) count += static_cast<uint32_t>(std::popcount(word));
    return count;
  }
};

/// Calls take(index, position) for each set bit of the bitmap, in order, at most `held` times; how often.
template <typename Take>
uint32_t ForEach(const PositionCoding& coding, const Words& words, const Take& take) {
  uint32_t index = 0;
  for (uint32_t w = 0; w < kMostUpperWords; ++w) {
    for (uint64_t word = words.upper[w]; word != 0 && index < coding.held; word &= word - 1, ++index) {
      const uint32_t high = 64 * w + static_cast<uint32_t>(std::countr_zero(word)) - index;
      take(index, high << coding.low_bits | words.Low(index, coding.low_bits));
    }
  }
  return index;
}

}  // namespace

void PackPositions(const PositionCoding& coding, const uint16_t* positions, std::byte* out) {
  std::array<uint64_t, kMostUpperWords> upper{};
  std::memset(out + coding.upper_bytes(), 0, coding.lower_bytes());
  uint64_t pending = 0;
  uint32_t filled = 0;
  std::byte* lower = out + coding.upper_bytes();
  const uint32_t mask = (1u << coding.low_bits) - 1;
  for (uint32_t i = 0; i < coding.held; ++i) {
    const uint32_t bit = (uint32_t{positions[i]} >> coding.low_bits) + i;
    upper[bit / 64] |= uint64_t{1} << (bit % 64);
    pending |= uint64_t{positions[i] & mask} << filled;
    for (filled += coding.low_bits; filled >= 8; filled -= 8, pending >>= 8) {
      *lower++ = static_cast<std::byte>(pending);
    }
  }
  if (filled > 0) *lower = static_cast<std::byte>(pending);
  std::memcpy(out, upper.data(), coding.upper_bytes());
}

uint32_t UnpackPositions(const PositionCoding& coding, const std::byte* in, uint16_t* positions) {
  return ForEach(coding, Words(coding, in), [&](uint32_t index, uint32_t position) {
    positions[index] = static_cast<uint16_t>(position);
  });
}

const char* CheckPositions(const PositionCoding& coding, const std::byte* in) {
  const Words words(coding, in);
  if (words.bits() != coding.held) return "the bitmap of positions does not have one bit per stored value";
  const char* problem = nullptr;
  uint32_t least = 0;
  ForEach(coding, words, [&](uint32_t, uint32_t position) {
    if (position < least) problem = "the positions do not ascend";
    if (position >= coding.values) problem = "a position lies beyond the block";
    least = position + 1;
  });
  if (problem != nullptr) return problem;
  const size_t used = size_t{coding.held} * coding.low_bits % 8;
  if (used != 0 && std::to_integer<uint32_t>(in[coding.bytes() - 1]) >> used != 0) {
    return "unused bits behind the positions are set";
  }
  return nullptr;
}

}  // namespace atl

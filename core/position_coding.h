#ifndef ATOLL_CORE_POSITION_CODING_H_
#define ATOLL_CORE_POSITION_CODING_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace atl {

/// `held` ascending positions below `values` (at most 4096) in a number of bytes that only these three fix,
/// as Elias and Fano code them (Elias, JACM 21(2), 1974): the lower `low_bits` bits of each as they are, the
/// rest as a bitmap in which position i sets bit (position >> low_bits) + i. With low_bits = log2(values /
/// held), at most half a bit per position above the entropy. Grammar: docs/reference/codecs.md.
struct PositionCoding {
  uint32_t values = 0;
  uint32_t held = 0;  // 1 to 128
  uint32_t low_bits = 0;

  constexpr size_t upper_bytes() const {
    return (held + (values + (1u << low_bits) - 1) / (1u << low_bits) + 7) / 8;
  }
  constexpr size_t lower_bytes() const { return (size_t{held} * low_bits + 7) / 8; }
  constexpr size_t bytes() const { return upper_bytes() + lower_bytes(); }
};

/// Writes coding.bytes() bytes.
void PackPositions(const PositionCoding& coding, const uint16_t* positions, std::byte* out);

/// Of bytes that CheckPositions found well; how many there are, `held`. Of any others it writes at most
/// `held` positions, of any size.
uint32_t UnpackPositions(const PositionCoding& coding, const std::byte* in, uint16_t* positions);

/// What is wrong with these foreign coding.bytes() bytes, or null: the bitmap has not exactly `held` bits,
/// positions do not ascend or lie beyond `values`, unused bits are set.
const char* CheckPositions(const PositionCoding& coding, const std::byte* in);

}  // namespace atl

#endif  // ATOLL_CORE_POSITION_CODING_H_

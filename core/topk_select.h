#ifndef ATOLL_CORE_TOPK_SELECT_H_
#define ATOLL_CORE_TOPK_SELECT_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace atl {

/// Positions, ascending, of the `positions.size()` values of largest magnitude; of equal magnitudes the
/// lowest positions. Magnitudes are compared by their bits, so infinity and NaN stand above all numbers.
/// Requires 1
/// <= positions.size() <= values.size() <= 4096.
void SelectLargest(std::span<const float> values, std::span<uint16_t> positions);

}  // namespace atl

#endif  // ATOLL_CORE_TOPK_SELECT_H_

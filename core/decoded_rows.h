#ifndef ATOLL_CORE_DECODED_ROWS_H_
#define ATOLL_CORE_DECODED_ROWS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/merge.h"

namespace atl {

/// The same range of every contribution, decoded side by side, for merges that need all of them at once. The
/// range is as wide as possible with all rows within kRowsBytes, so that they stay in the L2 cache. Scratch
/// memory of one thread.
class DecodedRows {
 public:
  /// Allocates inputs.size() * width() float32 values. `inputs` outlives it.
  DecodedRows(std::span<const MergeInput> inputs, uint64_t elements);

  /// Values per row: a power of two that every codec's block divides and that divides kChunkAlignment. A
  /// function of the number of contributions and their codecs only.
  uint64_t width() const { return width_; }

  /// Decodes values [first, first + n) of every contribution; first is a multiple of width(), n <= width().
  void Load(uint64_t first, uint64_t n);

  size_t rows() const { return inputs_.size(); }
  float* row(size_t index) { return values_.data() + index * width_; }
  const float* row(size_t index) const { return values_.data() + index * width_; }

 private:
  std::span<const MergeInput> inputs_;
  uint64_t elements_;
  uint64_t width_;
  std::vector<float> values_;
};

inline constexpr uint64_t kRowsBytes = 256 << 10;

}  // namespace atl

#endif  // ATOLL_CORE_DECODED_ROWS_H_

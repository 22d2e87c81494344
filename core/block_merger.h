#ifndef ATOLL_CORE_BLOCK_MERGER_H_
#define ATOLL_CORE_BLOCK_MERGER_H_

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/decoded_rows.h"
#include "core/fragment_plan.h"
#include "core/merge_plan.h"
#include "core/sorting_network.h"

namespace atl {

/// Executes a merge plan block by block in float32. Use one object per thread: it holds the scratch memory (a
/// small array for sums, DecodedRows for trimmed means).
///
/// A sum is out[i] = sum over inputs, in the plan's order, of coefficient * decoded[i]: one rounded product
/// and one rounded addition each, starting from 0; by presence, it is then divided once by the sum of the
/// weights of those that hold the value, added in the same order. A trimmed mean sorts the products of a
/// coordinate, adds the remaining ones in ascending order and divides once by their number. In both cases the
/// bits of a value depend only on the plan, not on blocks, threads or vector width.
class BlockMerger {
 public:
  /// `plan` outlives it.
  explicit BlockMerger(const MergePlan& plan);

  /// The merged values [first, first + out.size()); first is a multiple of kChunkAlignment, out.size() at
  /// most that.
  void Merge(uint64_t first, std::span<float> out);

 private:
  void Sum(uint64_t first, std::span<float> out);
  void SumAcrossSegments(uint64_t first, size_t segment, std::span<float> out);
  void DivideByPresence(uint64_t first, std::span<float> out);
  void TrimmedMean(uint64_t first, std::span<float> out);
  void SortRows(uint64_t n);
  void MeanOfRows(std::span<float> out) const;

  const MergePlan& plan_;
  std::array<float, kChunkAlignment> scratch_;
  std::optional<DecodedRows> rows_;
  std::vector<Exchange> network_;
};

/// The merged values [first, first + out.size()) of any length; first is a multiple of kChunkAlignment.
void MergeRange(const MergePlan& plan, uint64_t first, std::span<float> out);

}  // namespace atl

#endif  // ATOLL_CORE_BLOCK_MERGER_H_

#ifndef ATOLL_CORE_MERGE_COMPARISON_H_
#define ATOLL_CORE_MERGE_COMPARISON_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/merge_plan.h"

namespace atl {

/// Compares each contribution, as sent (before a norm guard), with the merge: cosine and distance. Costs one
/// decoding and one product of every payload, on blocks that are still in the cache from the merge.
///
/// The vector is compared in pieces, which may run on different threads; sums are float64, taken within a
/// piece in order and over the pieces in order, so the result has the same bits on any number of threads.
class MergeComparison {
 public:
  struct Result {
    std::vector<double> cosines;    // with the merge, by input; 0 where one of the two is zero
    std::vector<double> distances;  // |x_i - merge|
  };

  /// `plan` outlives it.
  MergeComparison(const MergePlan& plan, size_t pieces);

  /// `merged` is values [first, first + merged.size()) of the merge, at most kChunkAlignment of them, first a
  /// multiple of that. The blocks of one piece come in order, from one thread.
  void Add(size_t piece, uint64_t first, std::span<const float> merged);

  Result Finish() const;

 private:
  const MergePlan& plan_;
  const size_t stride_;       // sums of a piece: |merge|^2, then <x_i, merge> by input
  std::vector<double> sums_;  // by piece
};

}  // namespace atl

#endif  // ATOLL_CORE_MERGE_COMPARISON_H_

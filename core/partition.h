#ifndef ATOLL_CORE_PARTITION_H_
#define ATOLL_CORE_PARTITION_H_

#include <cstdint>

namespace atl {

/// Samples in `tokens` tokens of text: window i starts at token i*context and has context+1 tokens (the
/// targets are the inputs shifted by one), so there are (tokens-1)/context; 0 when the text is shorter than
/// one window.
uint64_t SampleCount(uint64_t tokens, uint32_t context);

/// Parts of the shared data of a new run that does not say how many: four for each planned worker and at
/// least 64, so that workers can be added. A part that nobody has is read by everybody in turn
/// (core/data_shares.h), so spare ones cost nothing.
uint32_t DefaultPartitions(uint32_t workers);

/// The order in which a run visits its samples: pass after pass over all of them, each in its own
/// pseudo-random order. Position g >= 0 of the run is sample Permutation_{g / samples}(g mod samples).
/// Stateless, O(1) per sample, the same on every machine: a Feistel network with cycle walking, specified to
/// the bit in docs/reference/data_order.md. Immutable after construction except for a cached key: copy it per
/// thread.
class SampleOrder {
 public:
  /// samples >= 1, at most 2^62.
  SampleOrder(uint64_t samples, uint64_t seed);

  uint64_t samples() const { return samples_; }

  /// Sample at this position of the run.
  uint64_t At(uint64_t position) const;

  /// k-th sample of partition `partition` of `partitions`: At(k*partitions + partition). Partitions share no
  /// position, and together they cover all. Requires partition < partitions.
  uint64_t SampleAt(uint32_t partition, uint32_t partitions, uint64_t k) const;

 private:
  static constexpr int kRounds = 6;
  uint64_t samples_;
  uint64_t seed_;
  uint32_t half_bits_;
};

/// A seed for one of several orders of a run: a function of the run's seed and the number of the order.
uint64_t DerivedSeed(uint64_t seed, uint64_t number);

}  // namespace atl

#endif  // ATOLL_CORE_PARTITION_H_

#ifndef ATOLL_CORE_SAMPLE_INDEX_H_
#define ATOLL_CORE_SAMPLE_INDEX_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/run_options.h"

namespace atl {

/// Where the samples of a training text begin (docs/reference/data_order.md, "Samples"). A sample has
/// context + 1 tokens: its targets are its inputs shifted by one. Immutable and thread-safe.
class SampleIndex {
 public:
  /// `file_tokens`: tokens of each file, in the order of the text. kWithinFiles: a file of T tokens has
  /// SampleCount(T, context) samples, and the last tokens of a file may belong to none. kAcrossFiles: the
  /// files are one text.
  SampleIndex(std::span<const uint64_t> file_tokens, uint32_t context, SequenceBounds bounds);

  /// Number of samples; 0 if no file (or the whole text) is longer than the context.
  uint64_t size() const { return size_; }

  /// The first token of a sample, counted over all files. Requires sample < size(). O(log files).
  uint64_t FirstToken(uint64_t sample) const;

 private:
  /// Samples that follow each other at a distance of `context` tokens.
  struct Stretch {
    uint64_t first_sample = 0;
    uint64_t first_token = 0;
  };
  void Add(uint64_t first_token, uint64_t tokens);

  const uint32_t context_;
  std::vector<Stretch> stretches_;  // each has a sample
  uint64_t size_ = 0;
};

}  // namespace atl

#endif  // ATOLL_CORE_SAMPLE_INDEX_H_

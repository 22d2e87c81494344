#include "core/sample_index.h"

#include <algorithm>
#include <numeric>

#include "core/partition.h"

namespace atl {

SampleIndex::SampleIndex(std::span<const uint64_t> file_tokens, uint32_t context, SequenceBounds bounds)
    : context_(context) {
  if (bounds == SequenceBounds::kAcrossFiles) {
    Add(0, std::accumulate(file_tokens.begin(), file_tokens.end(), uint64_t{0}));
    return;
  }
  uint64_t first = 0;
  for (const uint64_t tokens : file_tokens) {
    Add(first, tokens);
    first += tokens;
  }
}

void SampleIndex::Add(uint64_t first_token, uint64_t tokens) {
  const uint64_t samples = SampleCount(tokens, context_);
  if (samples == 0) return;
  stretches_.push_back({.first_sample = size_, .first_token = first_token});
  size_ += samples;
}

uint64_t SampleIndex::FirstToken(uint64_t sample) const {
  const auto after = std::ranges::upper_bound(stretches_, sample, {}, &Stretch::first_sample);
  const Stretch& stretch = *std::prev(after);
  return stretch.first_token + (sample - stretch.first_sample) * context_;
}

}  // namespace atl

#include "core/mixture_order.h"

#include <algorithm>
#include <numeric>

namespace atl {

MixtureOrder::MixtureOrder(std::span<const uint32_t> weights, uint64_t seed)
    : starts_(1, 0), slots_(std::accumulate(weights.begin(), weights.end(), uint64_t{0}), seed) {
  for (const uint32_t weight : weights) starts_.push_back(starts_.back() + weight);
}

MixtureOrder::Place MixtureOrder::At(uint64_t position) const {
  // The blocks are the passes of an order over the slots.
  const uint64_t slot = slots_.At(position);
  const auto after = std::ranges::upper_bound(starts_, slot);
  const auto part = static_cast<size_t>(after - starts_.begin()) - 1;
  const uint64_t weight = starts_[part + 1] - starts_[part];
  return {.part = static_cast<uint32_t>(part),
          .position = position / block() * weight + (slot - starts_[part])};
}

uint64_t MixtureOrder::PartSeed(uint64_t seed, uint32_t part) { return DerivedSeed(seed, part); }

}  // namespace atl

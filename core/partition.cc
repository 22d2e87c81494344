#include "core/partition.h"

#include <algorithm>
#include <array>
#include <bit>

namespace atl {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15ull;

/// The output function of splitmix64 (Steele, Lea, Flood 2014; constants of Stafford's Mix13).
uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

}  // namespace

uint64_t SampleCount(uint64_t tokens, uint32_t context) {
  return tokens == 0 || context == 0 ? 0 : (tokens - 1) / context;
}

uint32_t DefaultPartitions(uint32_t workers) {
  constexpr uint32_t kFewest = 64, kMost = 65536;
  return static_cast<uint32_t>(std::clamp<uint64_t>(4 * uint64_t{workers}, kFewest, kMost));
}

SampleOrder::SampleOrder(uint64_t samples, uint64_t seed)
    : samples_(std::max<uint64_t>(samples, 1)),
      seed_(seed),
      half_bits_(std::max<uint32_t>(1, (static_cast<uint32_t>(std::bit_width(samples_ - 1)) + 1) / 2)) {}

uint64_t SampleOrder::At(uint64_t position) const {
  const uint64_t pass = position / samples_;
  const uint64_t pass_key = Mix(seed_ + (pass + 1) * kGolden);
  std::array<uint64_t, kRounds> keys;
  for (int r = 0; r < kRounds; ++r) keys[r] = Mix(pass_key + (static_cast<uint64_t>(r) + 1) * kGolden);

  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t x = position % samples_;
  // The network permutes [0, 4^half_bits), less than four times the samples: following the cycle until it is
  // back among the samples is again a permutation, after fewer than four rounds on average.
  do {
    uint64_t left = x >> half_bits_;
    uint64_t right = x & mask;
    for (const uint64_t key : keys) {
      const uint64_t next = left ^ (Mix(right ^ key) & mask);
      left = right;
      right = next;
    }
    x = left << half_bits_ | right;
  } while (x >= samples_);
  return x;
}

uint64_t DerivedSeed(uint64_t seed, uint64_t number) {
  constexpr uint64_t kMixture = 0x6d697874757265;  // "mixture"
  return Mix(Mix(seed ^ kMixture) + (number + 1) * kGolden);
}

uint64_t SampleOrder::SampleAt(uint32_t partition, uint32_t partitions, uint64_t k) const {
  return At(k * partitions + partition);
}

}  // namespace atl

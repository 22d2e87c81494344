#ifndef ATOLL_COMMON_RANDOM_H_
#define ATOLL_COMMON_RANDOM_H_

#include <cstdint>

namespace atl {

/// One step of SplitMix64 (S. Vigna, public domain, prng.di.unimi.it/splitmix64.c): a bijective mix of 64
/// bits. Used where a sequence must be the same with every compiler and library; <random>'s distributions are
/// not.
constexpr uint64_t SplitMix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Derives a seed for one purpose from a common seed. The resulting streams are unrelated.
constexpr uint64_t DeriveSeed(uint64_t seed, uint64_t purpose) {
  return SplitMix64(SplitMix64(seed) ^ SplitMix64(~purpose));
}

/// The SplitMix64 sequence as a generator (a UniformRandomBitGenerator). Not for secrets. Not thread-safe.
class SplitMixGenerator {
 public:
  using result_type = uint64_t;
  constexpr explicit SplitMixGenerator(uint64_t seed) : state_(seed) {}
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return UINT64_MAX; }
  constexpr result_type operator()() {
    const uint64_t out = SplitMix64(state_);
    state_ += 0x9e3779b97f4a7c15;
    return out;
  }

  /// Uniform in [0, bound), without bias: the upper half of a 128-bit product, rejecting the few that would
  /// be over-represented (D. Lemire, arXiv 1805.10941). bound > 0.
  constexpr uint64_t Below(uint64_t bound) {
    const uint64_t threshold = (0 - bound) % bound;
    while (true) {
      const unsigned __int128 product = static_cast<unsigned __int128>((*this)()) * bound;
      if (static_cast<uint64_t>(product) >= threshold) return static_cast<uint64_t>(product >> 64);
    }
  }
  /// Uniform in [0, 1), 53 bits.
  constexpr double Uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

}  // namespace atl

#endif  // ATOLL_COMMON_RANDOM_H_

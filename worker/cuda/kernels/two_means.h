#ifndef ATOLL_WORKER_CUDA_KERNELS_TWO_MEANS_H_
#define ATOLL_WORKER_CUDA_KERNELS_TWO_MEANS_H_

#include <bit>
#include <cstdint>

#include "core/codec_format.h"
#include "core/float_bits.h"
#include "worker/cuda/device.h"

namespace atl::device {

/// The two levels of a block of topk, by the rounds of core/codec_topk.cc: sums of float64 in the order of
/// the values, divisions rounded once.
struct TwoMeans {
  double at = 0;  // where the magnitudes part
  double low = 0;
  double high = 0;
  bool finite = true;

  /// Called by all threads of the block; each warp computes them, in its even threads the lower mean, in its
  /// odd threads the upper one. `held` has `count` values, at least one.
  template <typename Held>
  ATOLL_DEVICE static TwoMeans Of(const Held& held, uint32_t count) {
    TwoMeans means;
    uint32_t zeros = 0;
    double sum = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const float value = held.Load(i);
      means.finite = means.finite && IsFiniteBits(value);
      zeros += static_cast<uint32_t>(value == 0.0f);
      sum += Magnitude(value);
    }
    if (!means.finite) return means;
    if (zeros > 0) {
      means.at = 0x1p-149;  // the least magnitude above zero
      means.TakeMeans(held, count);
      return means;
    }
    means.at = sum / static_cast<double>(count);
    means.TakeMeans(held, count);
    for (int round = 0; round < kTopKLloydRounds; ++round) {
      means.at = (means.low + means.high) / 2;
      means.TakeMeans(held, count);
    }
    return means;
  }

  ATOLL_DEVICE bool Upper(float value) const { return Magnitude(value) >= at; }

 private:
  ATOLL_DEVICE static double Magnitude(float value) {
    return static_cast<double>(std::bit_cast<float>(std::bit_cast<uint32_t>(value) & 0x7fffffffu));
  }

  template <typename Held>
  ATOLL_DEVICE void TakeMeans(const Held& held, uint32_t count) {
    const bool upper = ThreadIndex() % 2 == 1;
    double sum = 0;
    uint32_t counted = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const float value = held.Load(i);
      if (Upper(value) != upper) continue;
      sum += Magnitude(value);
      ++counted;
    }
    const double mean = counted > 0 ? sum / static_cast<double>(counted) : 0;
    low = ShuffleFrom(mean, 0);
    high = ShuffleFrom(mean, 1);
  }
};

}  // namespace atl::device

#endif  // ATOLL_WORKER_CUDA_KERNELS_TWO_MEANS_H_

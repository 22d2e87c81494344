#ifndef ATOLL_WORKER_TORCH_FAST_EXP_H_
#define ATOLL_WORKER_TORCH_FAST_EXP_H_

#include <cstddef>
#include <cstdint>

namespace atl {

/// Sixteen values that are computed side by side, in whatever registers the target has (GCC's vector types).
inline constexpr size_t kVectorLanes = 16;
using Float16s = float __attribute__((vector_size(kVectorLanes * sizeof(float))));
using Int16s = int32_t __attribute__((vector_size(kVectorLanes * sizeof(int32_t))));

/// The first `lanes` values at `from`; the other lanes of `to` stay as they are.
inline __attribute__((always_inline)) void LoadLanes(const float* from, size_t lanes, Float16s& to) {
  __builtin_memcpy(&to, from, lanes * sizeof(float));
}

inline __attribute__((always_inline)) void StoreLanes(const Float16s& from, size_t lanes, float* to) {
  __builtin_memcpy(to, &from, lanes * sizeof(float));
}

/// x = exp(x) with a relative error below 2e-7 for x in [-87, 88], clamped outside; NaN stays NaN. Range
/// reduction by ln 2 in two parts and the polynomial of Cephes' expf (S. Moshier). Always inlined, so that it
/// is compiled for its caller's target; by reference, because wide vectors have no common calling convention.
inline __attribute__((always_inline)) void FastExp(Float16s& x) {
  x = x < -87.0f ? Float16s{} - 87.0f : x;
  x = x > 88.0f ? Float16s{} + 88.0f : x;
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits of the mantissa.
  const Float16s shifted = x * 1.44269504f + 12582912.0f;
  const Float16s n = shifted - 12582912.0f;
  const Float16s r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Float16s p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  // A cast between vector types keeps the bits.
  const Int16s exponent = (reinterpret_cast<Int16s>(shifted) << 23) + (127 << 23);
  x = p * reinterpret_cast<Float16s>(exponent);
}

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_FAST_EXP_H_

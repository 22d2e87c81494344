#ifndef ATOLL_CORE_DETERMINISTIC_SUM_H_
#define ATOLL_CORE_DETERMINISTIC_SUM_H_

#include <array>
#include <cstddef>

namespace atl {

/// value(0)^2 + ... + value(n - 1)^2 in float64, in an order that every vector width can keep: eight
/// interleaved sums (value i goes to sum i mod 8), added as ((s0+s1)+(s2+s3))+((s4+s5)+(s6+s7)).
template <typename Value>
double DeterministicSumOfSquares(size_t n, const Value& value) {
  constexpr size_t kLanes = 8;
  std::array<double, kLanes> sums{};
  const size_t whole = n / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double v = value(i + lane);
      sums[lane] += v * v;
    }
  }
  for (size_t i = whole; i < n; ++i) {
    const double v = value(i);
    sums[i - whole] += v * v;
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

/// a[0] * b[0] + ... + a[n - 1] * b[n - 1] in float64, in the same order.
inline double DeterministicDotProduct(size_t n, const float* a, const float* b) {
  constexpr size_t kLanes = 8;
  std::array<double, kLanes> sums{};
  const size_t whole = n / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
    }
  }
  for (size_t i = whole; i < n; ++i) {
    sums[i - whole] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

}  // namespace atl

#endif  // ATOLL_CORE_DETERMINISTIC_SUM_H_

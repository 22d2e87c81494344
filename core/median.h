#ifndef ATOLL_CORE_MEDIAN_H_
#define ATOLL_CORE_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace atl {

/// Of the values that are not zero, of an even number the mean of the middle two; 0 when all are zero.
inline double MedianOfNonZero(std::vector<double> values) {
  std::erase(values, 0.0);
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace atl

#endif  // ATOLL_CORE_MEDIAN_H_

#ifndef ATOLL_TESTS_CORE_MERGE_REFERENCE_H_
#define ATOLL_TESTS_CORE_MERGE_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/fragment_plan.h"
#include "core/run_options.h"

namespace atl {

// The merges as their papers write them, in float64 on whole vectors: no coefficients, no blocks, no recorded
// norms. What core/merge_planner.h and core/block_merger.h are compared with.

using Vector = std::vector<double>;

inline double NormOf(const Vector& x, uint64_t begin, uint64_t end) {
  double squares = 0;
  for (uint64_t k = begin; k < end; ++k) squares += x[k] * x[k];
  return std::sqrt(squares);
}
inline double NormOf(const Vector& x) { return NormOf(x, 0, x.size()); }

inline double MedianOf(Vector values) {
  std::ranges::sort(values);
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

inline double MedianNormOf(const std::vector<Vector>& x) {
  Vector norms;
  for (const Vector& v : x) {
    if (NormOf(v) > 0) norms.push_back(NormOf(v));
  }
  return norms.empty() ? 0 : MedianOf(norms);
}

inline void GuardNorms(std::vector<Vector>& x) {
  const double median = MedianNormOf(x);
  for (Vector& v : x) {
    const double norm = NormOf(v);
    if (norm == 0) continue;
    for (double& value : v) value *= std::min(1.0, median / norm);
  }
}

inline Vector MeanOf(const std::vector<Vector>& x, const Vector& w) {
  Vector mean(x[0].size());
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t k = 0; k < mean.size(); ++k) mean[k] += w[i] * x[i][k];
  }
  return mean;
}

inline Vector RdaOf(const std::vector<Vector>& x, const Vector& w, const FragmentLayout& layout) {
  Vector merged = MeanOf(x, w);
  for (const TensorSlot& slot : layout.slots) {
    if (slot.embedding) continue;
    const uint64_t end = slot.offset + slot.elements;
    Vector direction(slot.elements);
    double mean_norm = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double norm = NormOf(x[i], slot.offset, end);
      mean_norm += w[i] * norm;
      if (norm == 0) continue;
      for (uint64_t k = 0; k < slot.elements; ++k) direction[k] += w[i] * (x[i][slot.offset + k] / norm);
    }
    const double length = NormOf(direction);
    for (uint64_t k = 0; k < slot.elements; ++k) {
      merged[slot.offset + k] = length > 0 ? mean_norm * (direction[k] / length) : 0;
    }
  }
  return merged;
}

inline Vector TrimmedMeanOf(const std::vector<Vector>& x, size_t dropped) {
  Vector merged(x[0].size());
  for (size_t k = 0; k < merged.size(); ++k) {
    Vector column;
    for (const Vector& v : x) column.push_back(v[k]);
    std::ranges::sort(column);
    double sum = 0;
    for (size_t i = dropped; i < column.size() - dropped; ++i) sum += column[i];
    merged[k] = sum / static_cast<double>(column.size() - 2 * dropped);
  }
  return merged;
}

/// Radius 0: at every pass the median distance from v of those that are not there.
inline Vector CenteredClipOf(const std::vector<Vector>& x, const Vector& w, double radius,
                             uint32_t iterations) {
  Vector v(x[0].size());
  for (uint32_t t = 0; t < iterations; ++t) {
    Vector step(v.size());
    std::vector<Vector> away(x.size(), Vector(v.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t k = 0; k < v.size(); ++k) away[i][k] = x[i][k] - v[k];
    }
    const double bound = radius > 0 ? radius : MedianNormOf(away);
    for (size_t i = 0; i < x.size(); ++i) {
      const double distance = NormOf(away[i]);
      const double factor = distance > 0 ? std::min(1.0, bound / distance) : 1.0;
      for (size_t k = 0; k < v.size(); ++k) step[k] += w[i] * factor * away[i][k];
    }
    for (size_t k = 0; k < v.size(); ++k) v[k] += step[k];
  }
  return v;
}

inline Vector ReferenceMerge(const std::vector<std::vector<float>>& decoded, const Vector& weights,
                             const MergeOptions& options, const FragmentLayout& layout) {
  std::vector<Vector> x;
  for (const std::vector<float>& values : decoded) x.emplace_back(values.begin(), values.end());
  if (options.norm_guard) GuardNorms(x);
  switch (options.method) {
    case MergeMethod::kMean:
      return MeanOf(x, weights);
    case MergeMethod::kRda:
      return RdaOf(x, weights, layout);
    case MergeMethod::kTrimmedMean:
      return TrimmedMeanOf(x, static_cast<size_t>(options.trim * static_cast<double>(x.size())));
    case MergeMethod::kMedian:
      return TrimmedMeanOf(x, (x.size() - 1) / 2);
    case MergeMethod::kCenteredClip:
      return CenteredClipOf(
          x, weights,
          options.clip_radius > 0 || options.clip_by_distance ? options.clip_radius : MedianNormOf(x),
          options.clip_iterations);
  }
  return {};
}

}  // namespace atl

#endif  // ATOLL_TESTS_CORE_MERGE_REFERENCE_H_

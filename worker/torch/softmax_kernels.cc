#include "worker/torch/softmax_kernels.h"

#include <cmath>
#include <limits>

#include "worker/torch/fast_exp.h"
#include "worker/torch/multiversion.h"

namespace atl {
namespace {

inline __attribute__((always_inline)) void LargerOf(const Float16s& v, Float16s& largest) {
  largest = v > largest ? v : largest;
}

/// v: logits; becomes exp(v - largest), which `sum` takes up.
inline __attribute__((always_inline)) void ExpOf(float largest, Float16s& v, Float16s& sum) {
  v = v - largest;
  FastExp(v);
  sum = sum + v;
}

}  // namespace

ATOLL_MULTIVERSION
double CrossEntropyRow(size_t classes, size_t target, float scale, float* __restrict logits) {
  const size_t whole = classes - classes % kVectorLanes;
  const size_t rest = classes - whole;
  // The lanes behind the end have no probability.
  const Float16s none = Float16s{} - std::numeric_limits<float>::max();
  Float16s v, end = none, largest = none;
  LoadLanes(logits + whole, rest, end);
  for (size_t i = 0; i < whole; i += kVectorLanes) {
    LoadLanes(logits + i, kVectorLanes, v);
    LargerOf(v, largest);
  }
  LargerOf(end, largest);
  float most = largest[0];
  for (size_t lane = 1; lane < kVectorLanes; ++lane) most = largest[lane] > most ? largest[lane] : most;

  const double of_target = logits[target];
  Float16s sums = {};
  for (size_t i = 0; i < whole; i += kVectorLanes) {
    LoadLanes(logits + i, kVectorLanes, v);
    ExpOf(most, v, sums);
    StoreLanes(v, kVectorLanes, logits + i);
  }
  ExpOf(most, end, sums);
  double sum = 0;
  for (size_t lane = 0; lane < kVectorLanes; ++lane) sum += sums[lane];

  const float factor = static_cast<float>(scale / sum);
  for (size_t i = 0; i < whole; i += kVectorLanes) {
    LoadLanes(logits + i, kVectorLanes, v);
    StoreLanes(v * factor, kVectorLanes, logits + i);
  }
  end = end * factor;
  StoreLanes(end, rest, logits + whole);
  logits[target] -= scale;
  return std::log(sum) + (most - of_target);
}

}  // namespace atl

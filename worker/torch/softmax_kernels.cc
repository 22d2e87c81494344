#include "worker/torch/softmax_kernels.h"

#include <cmath>
#include <limits>

#include "worker/torch/fast_exp.h"
#include "worker/torch/multiversion.h"

namespace atl {
namespace {

inline __attribute__((always_inline)) void LoadFrom(const float* from, Float16s& to) {
  __builtin_memcpy(&to, from, sizeof(to));
}

inline __attribute__((always_inline)) void StoreTo(const Float16s& from, float* to) {
  __builtin_memcpy(to, &from, sizeof(from));
}

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
  const size_t rest = (classes - whole) * sizeof(float);
  // The lanes behind the end have no probability.
  const Float16s none = Float16s{} - std::numeric_limits<float>::max();
  Float16s v, end = none, largest = none;
  __builtin_memcpy(&end, logits + whole, rest);
  for (size_t i = 0; i < whole; i += kVectorLanes) {
    LoadFrom(logits + i, v);
    LargerOf(v, largest);
  }
  LargerOf(end, largest);
  float most = largest[0];
  for (size_t lane = 1; lane < kVectorLanes; ++lane) most = largest[lane] > most ? largest[lane] : most;

  const double of_target = logits[target];
  Float16s sums = {};
  for (size_t i = 0; i < whole; i += kVectorLanes) {
    LoadFrom(logits + i, v);
    ExpOf(most, v, sums);
    StoreTo(v, logits + i);
  }
  ExpOf(most, end, sums);
  double sum = 0;
  for (size_t lane = 0; lane < kVectorLanes; ++lane) sum += sums[lane];

  const float factor = static_cast<float>(scale / sum);
  for (size_t i = 0; i < whole; i += kVectorLanes) {
    LoadFrom(logits + i, v);
    StoreTo(v * factor, logits + i);
  }
  end = end * factor;
  __builtin_memcpy(logits + whole, &end, rest);
  logits[target] -= scale;
  return std::log(sum) + (most - of_target);
}

}  // namespace atl

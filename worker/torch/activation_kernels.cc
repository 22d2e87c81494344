#include "worker/torch/activation_kernels.h"

#include "worker/torch/fast_exp.h"
#include "worker/torch/multiversion.h"

namespace atl {
namespace {

constexpr float kTwiceRootTwoOverPi = 1.5957691216057308f;
constexpr float kCubic = 0.044715f;

inline __attribute__((always_inline)) void GeluOf(Float16s& v) {
  Float16s e = (v + kCubic * v * v * v) * -kTwiceRootTwoOverPi;
  FastExp(e);
  v = v / (1.0f + e);
}

// v: the argument; becomes the derivative.
inline __attribute__((always_inline)) void GeluSlopeOf(Float16s& v) {
  const Float16s square = v * v;
  Float16s e = (v + kCubic * v * square) * -kTwiceRootTwoOverPi;
  FastExp(e);
  const Float16s s = 1.0f / (1.0f + e);
  const Float16s inner = kTwiceRootTwoOverPi * (1.0f + 3.0f * kCubic * square);
  // s*e is 1 - s without the cancellation where s is nearly 1.
  v = s + v * s * (s * e) * inner;
}

}  // namespace

ATOLL_MULTIVERSION
void GeluForward(size_t elements, const float* __restrict x, float* __restrict out) {
  Float16s v = {};
  size_t i = 0;
  for (; i + kVectorLanes <= elements; i += kVectorLanes) {
    LoadLanes(x + i, kVectorLanes, v);
    GeluOf(v);
    StoreLanes(v, kVectorLanes, out + i);
  }
  if (i == elements) return;
  LoadLanes(x + i, elements - i, v);
  GeluOf(v);
  StoreLanes(v, elements - i, out + i);
}

ATOLL_MULTIVERSION
void GeluBackward(size_t elements, const float* __restrict x, const float* __restrict grad_out,
                  float* __restrict grad_x) {
  Float16s v = {}, grad = {};
  size_t i = 0;
  for (; i + kVectorLanes <= elements; i += kVectorLanes) {
    LoadLanes(x + i, kVectorLanes, v);
    LoadLanes(grad_out + i, kVectorLanes, grad);
    GeluSlopeOf(v);
    StoreLanes(v * grad, kVectorLanes, grad_x + i);
  }
  if (i == elements) return;
  LoadLanes(x + i, elements - i, v);
  LoadLanes(grad_out + i, elements - i, grad);
  GeluSlopeOf(v);
  StoreLanes(v * grad, elements - i, grad_x + i);
}

}  // namespace atl

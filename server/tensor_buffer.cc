#include "server/tensor_buffer.h"

#include <algorithm>
#include <new>

namespace atoll {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

void TensorBuffer::Free::operator()(float* data) const { ::operator delete[](data, kAlignment); }

TensorBuffer::TensorBuffer(uint64_t elements)
    : data_(static_cast<float*>(::operator new[](elements * sizeof(float), kAlignment))),
      elements_(elements) {}

TensorBuffer TensorBuffer::Zeros(uint64_t elements) {
  TensorBuffer buffer(elements);
  std::ranges::fill(buffer.values(), 0.0F);
  return buffer;
}

TensorBuffer TensorBuffer::CopyOf(std::span<const float> values) {
  TensorBuffer buffer(values.size());
  std::ranges::copy(values, buffer.values().begin());
  return buffer;
}

}  // namespace atoll

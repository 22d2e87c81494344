#include "server/rounds/tensor_buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace atl {
namespace {

constexpr size_t kAlignment = 64;
// Huge pages: fewer faults when a buffer is new, and fewer misses of the TLB in every pass over it.
constexpr size_t kHugePage = size_t{2} << 20;

float* Allocate(uint64_t elements) {
  const size_t bytes = elements * sizeof(float);
  const size_t alignment = bytes < kHugePage ? kAlignment : kHugePage;
  void* const data = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (data == nullptr && bytes > 0) throw std::bad_alloc();  // as operator new
  // Only those that the buffer fills, so that nothing besides it becomes resident. A hint: its failure
  // changes nothing.
  if (bytes >= kHugePage) ::madvise(data, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return static_cast<float*>(data);
}

}  // namespace

void TensorBuffer::Free::operator()(float* data) const { std::free(data); }

TensorBuffer::TensorBuffer(uint64_t elements) : data_(Allocate(elements)), elements_(elements) {}

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

}  // namespace atl

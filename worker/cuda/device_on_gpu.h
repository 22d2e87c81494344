#ifndef ATOLL_WORKER_CUDA_DEVICE_ON_GPU_H_
#define ATOLL_WORKER_CUDA_DEVICE_ON_GPU_H_

#include <cstdint>
#include <type_traits>

// worker/cuda/device.h on a GPU. Nothing is checked here.

#define ATOLL_DEVICE __device__ __forceinline__
#define ATOLL_SHARED(type, name) __shared__ type name
#define ATOLL_UNROLL _Pragma("unroll")

namespace atl::device {

ATOLL_DEVICE uint32_t ThreadIndex() { return threadIdx.x; }
ATOLL_DEVICE uint32_t BlockIndex() { return blockIdx.x; }
ATOLL_DEVICE uint32_t BlockThreads() { return blockDim.x; }
ATOLL_DEVICE void Barrier() { __syncthreads(); }

inline constexpr uint32_t kWholeWarp = 0xffffffffu;

template <typename T>
ATOLL_DEVICE T ShuffleXor(T value, uint32_t mask) {
  return __shfl_xor_sync(kWholeWarp, value, static_cast<int>(mask));
}
template <typename T>
ATOLL_DEVICE T ShuffleFrom(T value, uint32_t lane) {
  return __shfl_sync(kWholeWarp, value, static_cast<int>(lane));
}
ATOLL_DEVICE uint32_t Ballot(bool flag) { return __ballot_sync(kWholeWarp, flag); }
ATOLL_DEVICE uint32_t CountBits(uint32_t word) { return static_cast<uint32_t>(__popc(word)); }

template <typename T>
class GlobalSpan {
 public:
  GlobalSpan() = default;
  __host__ __device__ GlobalSpan(T* data, uint64_t size) : data_(data), size_(size) {}

  ATOLL_DEVICE uint64_t size() const { return size_; }
  ATOLL_DEVICE std::remove_const_t<T> Load(uint64_t index) const { return data_[index]; }
  ATOLL_DEVICE void Store(uint64_t index, T value) const { data_[index] = value; }
  template <typename Wide>
  ATOLL_DEVICE Wide LoadAs(uint64_t index) const {
    return *reinterpret_cast<const Wide*>(data_ + index);
  }
  template <typename Wide>
  ATOLL_DEVICE void StoreAs(uint64_t index, Wide value) const {
    *reinterpret_cast<Wide*>(data_ + index) = value;
  }
  ATOLL_DEVICE void AtomicMin(uint64_t index, T value) const { atomicMin(data_ + index, value); }

 private:
  T* data_ = nullptr;
  uint64_t size_ = 0;
};

template <typename T, uint32_t kSize>
class SharedArray {
 public:
  ATOLL_DEVICE T Load(uint32_t index) const { return data_[index]; }
  ATOLL_DEVICE void Store(uint32_t index, T value) { data_[index] = value; }
  template <typename Wide>
  ATOLL_DEVICE Wide LoadAs(uint32_t index) const {
    return *reinterpret_cast<const Wide*>(data_ + index);
  }
  template <typename Wide>
  ATOLL_DEVICE void StoreAs(uint32_t index, Wide value) {
    *reinterpret_cast<Wide*>(data_ + index) = value;
  }
  ATOLL_DEVICE void AtomicAdd(uint32_t index, T value) { atomicAdd(data_ + index, value); }
  ATOLL_DEVICE void AtomicOr(uint32_t index, T value) { atomicOr(data_ + index, value); }

 private:
  alignas(16) T data_[kSize];
};

}  // namespace atl::device

#endif  // ATOLL_WORKER_CUDA_DEVICE_ON_GPU_H_

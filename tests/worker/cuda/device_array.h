#ifndef ATOLL_TESTS_WORKER_CUDA_DEVICE_ARRAY_H_
#define ATOLL_TESTS_WORKER_CUDA_DEVICE_ARRAY_H_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <span>
#include <vector>

namespace atl::device {

/// Ends the program with CUDA's message.
inline void CheckCuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::cerr << what << ": " << cudaGetErrorString(error) << "\n";
  std::exit(1);
}

/// Memory of the current device.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t size) : size_(size) {
    CheckCuda(cudaMalloc(&data_, size * sizeof(T)), "cudaMalloc");
  }
  explicit DeviceArray(std::span<const T> values) : DeviceArray(values.size()) { Fill(values); }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  size_t size() const { return size_; }
  void Fill(std::span<const T> values) const {
    CheckCuda(cudaMemcpy(data_, values.data(), values.size_bytes(), cudaMemcpyHostToDevice),
              "copy to the device");
  }
  std::vector<T> Values() const {
    std::vector<T> values(size_);
    CheckCuda(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost),
              "copy from the device");
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};

/// Whether the machine has a GPU and a driver for it.
inline bool HasDevice() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
}

}  // namespace atl::device

#endif  // ATOLL_TESTS_WORKER_CUDA_DEVICE_ARRAY_H_

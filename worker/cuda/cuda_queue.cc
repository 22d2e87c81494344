#include "worker/cuda/cuda_queue.h"

#include <cuda_runtime_api.h>

#include <functional>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "worker/cuda/kernel_launch.h"

namespace atl {
namespace {

/// CUDA keeps an error for the next caller who asks for the last one: LibTorch, after its next kernel.
void Forget() { static_cast<void>(cudaGetLastError()); }

absl::Status Checked(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return absl::OkStatus();
  Forget();
  return absl::InternalError(absl::StrFormat("the device failed at %s: %s", what, cudaGetErrorString(error)));
}

/// Makes a device current while it lives: the thread's own comes back.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) : known_(cudaGetDevice(&before_) == cudaSuccess) {
    cudaSetDevice(device);
  }
  ~CurrentDevice() {
    if (known_) cudaSetDevice(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
  const bool known_;
};

class CudaQueue final : public DeviceQueue {
 public:
  CudaQueue(int device, cudaStream_t compute, std::function<void()> free_memory)
      : device_(device), compute_(compute), free_memory_(std::move(free_memory)) {}
  ~CudaQueue() override {
    const CurrentDevice current(device_);
    if (copies_ != nullptr) cudaStreamDestroy(copies_);
    for (cudaEvent_t event : {computed_, copied_}) {
      if (event != nullptr) cudaEventDestroy(event);
    }
  }

  absl::Status Open() {
    const CurrentDevice current(device_);
    ATOLL_RETURN_IF_ERROR(Checked(cudaSetDevice(device_), "choosing it"));
    ATOLL_RETURN_IF_ERROR(
        Checked(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking), "making a stream"));
    for (cudaEvent_t* event : {&computed_, &copied_}) {
      ATOLL_RETURN_IF_ERROR(
          Checked(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "making an event"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<DeviceBlock> Allocate(size_t bytes) override {
    const CurrentDevice current(device_);
    void* data = nullptr;
    cudaError_t error = cudaMalloc(&data, bytes);
    if (error == cudaErrorMemoryAllocation && free_memory_) {
      Forget();
      free_memory_();
      error = cudaMalloc(&data, bytes);
    }
    if (error != cudaSuccess) {
      Forget();
      return absl::ResourceExhaustedError(absl::StrFormat("device %d has no room for %d bytes: %s", device_,
                                                          bytes, cudaGetErrorString(error)));
    }
    return DeviceBlock(static_cast<std::byte*>(data), [](std::byte* at) { cudaFree(at); });
  }

  absl::StatusOr<DeviceBlock> AllocatePinned(size_t bytes) override {
    const CurrentDevice current(device_);
    void* data = nullptr;
    if (const cudaError_t error = cudaMallocHost(&data, bytes); error != cudaSuccess) {
      Forget();
      return absl::ResourceExhaustedError(
          absl::StrFormat("no room for %d bytes of pinned memory: %s", bytes, cudaGetErrorString(error)));
    }
    return DeviceBlock(static_cast<std::byte*>(data), [](std::byte* at) { cudaFreeHost(at); });
  }

  absl::Status CopyIn(const std::byte* pinned, std::byte* device, size_t bytes) override {
    const CurrentDevice current(device_);
    ATOLL_RETURN_IF_ERROR(
        Checked(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, compute_), "a copy to it"));
    return Computed();
  }

  absl::Status CopyOnDevice(const std::byte* from, std::byte* to, size_t bytes) override {
    const CurrentDevice current(device_);
    ATOLL_RETURN_IF_ERROR(
        Checked(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, compute_), "a copy within it"));
    return Computed();
  }

  absl::Status Zero(std::byte* device, size_t bytes) override {
    const CurrentDevice current(device_);
    ATOLL_RETURN_IF_ERROR(Checked(cudaMemsetAsync(device, 0, bytes, compute_), "clearing memory"));
    return Computed();
  }

  absl::Status Push(CodecKind codec, const DevicePush& push) override {
    const CurrentDevice current(device_);
    ATOLL_RETURN_IF_ERROR(QueuePush(codec, push, compute_));
    return Computed();
  }

  absl::Status CopyOut(const std::byte* device, std::byte* pinned, size_t bytes) override {
    const CurrentDevice current(device_);
    ATOLL_RETURN_IF_ERROR(Checked(cudaStreamWaitEvent(copies_, computed_, 0), "ordering its streams"));
    ATOLL_RETURN_IF_ERROR(
        Checked(cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDeviceToHost, copies_), "a copy from it"));
    return Checked(cudaEventRecord(copied_, copies_), "recording an event");
  }

  absl::Status Wait() override {
    const CurrentDevice current(device_);
    ATOLL_RETURN_IF_ERROR(Checked(cudaEventSynchronize(computed_), "a push"));
    return Checked(cudaEventSynchronize(copied_), "a copy from it");
  }

 private:
  // Recorded behind each piece of work, not in Wait: the caller's next steps are queued by then.
  absl::Status Computed() { return Checked(cudaEventRecord(computed_, compute_), "recording an event"); }

  const int device_;
  const cudaStream_t compute_;
  const std::function<void()> free_memory_;
  cudaStream_t copies_ = nullptr;
  cudaEvent_t computed_ = nullptr;  // the last work on compute_
  cudaEvent_t copied_ = nullptr;    // the last work on copies_
};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceQueue>> CreateCudaQueue(int device, void* stream,
                                                             std::function<void()> free_memory) {
  auto queue = std::make_unique<CudaQueue>(device, static_cast<cudaStream_t>(stream), std::move(free_memory));
  ATOLL_RETURN_IF_ERROR(queue->Open());
  return queue;
}

}  // namespace atl

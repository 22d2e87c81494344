#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <memory>
#include <utility>

#include "worker/cuda/cuda_queue.h"
#include "worker/torch/device_queues.h"

namespace atl {
namespace {

class CudaStepGraph final : public StepGraph {
 public:
  explicit CudaStepGraph(c10::DeviceIndex device) : device_(device) {}

  void Record(std::function<void()> work) override {
    // CUDA records no stream that other work is queued on.
    c10::cuda::getCurrentCUDAStream(device_).synchronize();
    // The graph has memory of its own, and nothing is released while it is recorded.
    c10::cuda::CUDACachingAllocator::emptyCache();
    const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, device_));
    // Other threads copy pushes meanwhile: only this one is bound to what a recording allows.
    graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    try {
      work();
    } catch (...) {
      try {
        graph_.capture_end();
      } catch (const std::exception&) {  // of the recording that is given up
      }
      throw;
    }
    graph_.capture_end();
  }

  void Replay() override { graph_.replay(); }

 private:
  const c10::DeviceIndex device_;
  at::cuda::CUDAGraph graph_;
};

}  // namespace

DeviceQueueFactory QueuesOf(const torch::Device& device) {
  if (!device.is_cuda()) return {};
  return [index = device.index()] {
    // LibTorch keeps memory that its tensors no longer use.
    return CreateCudaQueue(index, c10::cuda::getCurrentCUDAStream(index).stream(),
                           [] { c10::cuda::CUDACachingAllocator::emptyCache(); });
  };
}

StepGraphFactory GraphsOf(const torch::Device& device) {
  if (!device.is_cuda()) return {};
  return [index = device.index()] { return std::make_unique<CudaStepGraph>(index); };
}

}  // namespace atl

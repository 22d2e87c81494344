#ifndef ATOLL_WORKER_TORCH_DEVICE_QUEUES_H_
#define ATOLL_WORKER_TORCH_DEVICE_QUEUES_H_

#include "worker/cuda/device_queue.h"
#include "worker/torch/libtorch.h"
#include "worker/torch/step_graph.h"

namespace atl {

/// Queues on the stream in which LibTorch computes on this GPU, in a build with the kernels
/// (ATOLL_WITH_CUDA_KERNELS). Empty without the kernels, and for any other device.
DeviceQueueFactory QueuesOf(const torch::Device& device);

/// Graphs on this GPU, in the same builds. Empty for any other device.
StepGraphFactory GraphsOf(const torch::Device& device);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_DEVICE_QUEUES_H_

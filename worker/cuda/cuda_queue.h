#ifndef ATOLL_WORKER_CUDA_CUDA_QUEUE_H_
#define ATOLL_WORKER_CUDA_CUDA_QUEUE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/cuda/device_queue.h"

namespace atl {

/// The DeviceQueue of the GPU with this index, on the stream of CUDA (a cudaStream_t) in which the caller
/// computes: a push sees the parameters as the work before it left them, and the work behind it waits for the
/// kernel only. Copies to the host run on a stream of their own, and Wait does not wait for the caller's own
/// work. Built with ATOLL_WITH_CUDA_KERNELS. Internal with CUDA's message when CUDA rejects the device.
absl::StatusOr<std::unique_ptr<DeviceQueue>> CreateCudaQueue(int device, void* stream);

}  // namespace atl

#endif  // ATOLL_WORKER_CUDA_CUDA_QUEUE_H_

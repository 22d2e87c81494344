#ifndef ATOLL_WORKER_CUDA_CUDA_QUEUE_H_
#define ATOLL_WORKER_CUDA_CUDA_QUEUE_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "worker/cuda/device_queue.h"

namespace atl {

/// The DeviceQueue of the GPU with this index, on the stream of CUDA (a cudaStream_t) in which the caller
/// computes: a push sees the parameters as the work before it left them, and the work behind it waits for the
/// kernel only. Copies to the host run on a stream of their own, and Wait does not wait for the caller's own
/// work. Built with ATOLL_WITH_CUDA_KERNELS. Internal with CUDA's message when CUDA rejects the device.
///
/// `free_memory` gives unused memory of the device back to CUDA. It is called when an allocation fails, which
/// is then tried once more. May be empty.
absl::StatusOr<std::unique_ptr<DeviceQueue>> CreateCudaQueue(int device, void* stream,
                                                             std::function<void()> free_memory = {});

}  // namespace atl

#endif  // ATOLL_WORKER_CUDA_CUDA_QUEUE_H_

#ifndef ATOLL_WORKER_CUDA_KERNEL_LAUNCH_H_
#define ATOLL_WORKER_CUDA_KERNEL_LAUNCH_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/run_options.h"
#include "worker/cuda/device_push.h"

// Launches of the kernels on a GPU. Built with the option ATOLL_WITH_CUDA_KERNELS; needs CUDA's runtime, and
// no header of it.

namespace atl {

/// Whether the codec has kernels: all but int8_quantile.
bool HasKernels(CodecKind codec);

/// Queues it on a stream of CUDA (a cudaStream_t) of the current device, and returns at once: *first_bad is
/// set to `elements`, then the kernel runs. Thread-safe. Unimplemented for a codec without kernels, Internal
/// with CUDA's message when it refuses.
absl::Status QueuePush(CodecKind codec, const DevicePush& push, void* stream);

/// Queues values += decode(payload) for a validated payload of `elements` values, in the same way.
absl::Status QueueAdd(CodecKind codec, const uint8_t* payload, uint64_t elements, float* values,
                      void* stream);

}  // namespace atl

#endif  // ATOLL_WORKER_CUDA_KERNEL_LAUNCH_H_

#ifndef ATOLL_WORKER_CUDA_DEVICE_QUEUE_H_
#define ATOLL_WORKER_CUDA_DEVICE_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/run_options.h"
#include "worker/cuda/device_push.h"

namespace atl {

/// Owns an allocation of a device, or pinned memory of the host.
using DeviceBlock = std::unique_ptr<std::byte, std::function<void(std::byte*)>>;

/// A device as an encoder of pushes needs it: memory, and work that runs later, in the order in which it was
/// queued. Copies to the host begin when the work before them is done, and do not delay the work behind them.
///
/// The memory that queued work names stays as it is, and allocated, until Wait. Not thread-safe. A
/// DeviceQueue outlives its blocks.
class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;

  /// Device memory at a multiple of 256 bytes, with any content. ResourceExhausted when the device has no
  /// room.
  virtual absl::StatusOr<DeviceBlock> Allocate(size_t bytes) = 0;
  /// Host memory that the device copies from and to without the processor.
  virtual absl::StatusOr<DeviceBlock> AllocatePinned(size_t bytes) = 0;

  virtual absl::Status CopyIn(const std::byte* pinned, std::byte* device, size_t bytes) = 0;
  virtual absl::Status CopyOnDevice(const std::byte* from, std::byte* to, size_t bytes) = 0;
  virtual absl::Status Zero(std::byte* device, size_t bytes) = 0;
  virtual absl::Status Push(CodecKind codec, const DevicePush& push) = 0;
  virtual absl::Status CopyOut(const std::byte* device, std::byte* pinned, size_t bytes) = 0;

  /// Returns when everything queued is done. Internal with the device's message when some of it failed.
  virtual absl::Status Wait() = 0;
};

/// Makes the queue of one encoder.
using DeviceQueueFactory = std::function<absl::StatusOr<std::unique_ptr<DeviceQueue>>()>;

}  // namespace atl

#endif  // ATOLL_WORKER_CUDA_DEVICE_QUEUE_H_

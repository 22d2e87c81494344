#ifndef ATOLL_TESTS_WORKER_CUDA_EXECUTOR_QUEUE_H_
#define ATOLL_TESTS_WORKER_CUDA_EXECUTOR_QUEUE_H_

#include <functional>
#include <vector>

#include "worker/cuda/device_queue.h"

namespace atl::device {

/// A DeviceQueue in host memory whose kernels run in the host executor. It does nothing before Wait, so
/// memory that changes too early gives wrong results. Allocations are filled with a pattern, and those beyond
/// `limit` bytes fail.
class ExecutorQueue final : public DeviceQueue {
 public:
  explicit ExecutorQueue(size_t limit = SIZE_MAX) : room_(limit) {}

  absl::StatusOr<DeviceBlock> Allocate(size_t bytes) override;
  absl::StatusOr<DeviceBlock> AllocatePinned(size_t bytes) override;
  absl::Status CopyIn(const std::byte* pinned, std::byte* device, size_t bytes) override;
  absl::Status Zero(std::byte* device, size_t bytes) override;
  absl::Status Push(CodecKind codec, const DevicePush& push) override;
  absl::Status CopyOut(const std::byte* device, std::byte* pinned, size_t bytes) override;
  absl::Status Wait() override;

  size_t device_bytes() const { return device_bytes_; }
  size_t pinned_bytes() const { return pinned_bytes_; }

 private:
  size_t room_;
  size_t device_bytes_ = 0;
  size_t pinned_bytes_ = 0;
  uint64_t launches_ = 0;
  std::vector<std::function<absl::Status()>> queued_;
};

}  // namespace atl::device

#endif  // ATOLL_TESTS_WORKER_CUDA_EXECUTOR_QUEUE_H_

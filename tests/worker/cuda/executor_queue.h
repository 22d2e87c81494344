#ifndef ATOLL_TESTS_WORKER_CUDA_EXECUTOR_QUEUE_H_
#define ATOLL_TESTS_WORKER_CUDA_EXECUTOR_QUEUE_H_

#include <functional>
#include <vector>

#include "worker/cuda/device_queue.h"

namespace atl::device {

/// When an ExecutorQueue works.
enum class When {
  kAtWait,  // memory of queued work that changes too early gives wrong results
  kAtOnce,  // save copies out: as on a stream, work behind a push may change what the push reads
};

/// A DeviceQueue in host memory whose kernels run in the host executor. Allocations are filled with a
/// pattern, and those beyond `limit` bytes fail, as does the push behind `pushes` others.
class ExecutorQueue final : public DeviceQueue {
 public:
  explicit ExecutorQueue(size_t limit = SIZE_MAX, When when = When::kAtWait, uint64_t pushes = UINT64_MAX)
      : room_(limit), when_(when), pushes_(pushes) {}

  absl::StatusOr<DeviceBlock> Allocate(size_t bytes) override;
  absl::StatusOr<DeviceBlock> AllocatePinned(size_t bytes) override;
  absl::Status CopyIn(const std::byte* pinned, std::byte* device, size_t bytes) override;
  absl::Status CopyOnDevice(const std::byte* from, std::byte* to, size_t bytes) override;
  absl::Status Zero(std::byte* device, size_t bytes) override;
  absl::Status Push(CodecKind codec, const DevicePush& push) override;
  absl::Status CopyOut(const std::byte* device, std::byte* pinned, size_t bytes) override;
  absl::Status Wait() override;

  size_t device_bytes() const { return device_bytes_; }
  size_t pinned_bytes() const { return pinned_bytes_; }

 private:
  absl::Status Do(std::function<absl::Status()> work);

  size_t room_;
  const When when_;
  const uint64_t pushes_;
  size_t device_bytes_ = 0;
  size_t pinned_bytes_ = 0;
  uint64_t launches_ = 0;
  std::vector<std::function<absl::Status()>> queued_;
};

}  // namespace atl::device

#endif  // ATOLL_TESTS_WORKER_CUDA_EXECUTOR_QUEUE_H_

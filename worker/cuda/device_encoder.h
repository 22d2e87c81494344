#ifndef ATOLL_WORKER_CUDA_DEVICE_ENCODER_H_
#define ATOLL_WORKER_CUDA_DEVICE_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/codec.h"
#include "core/fragment_plan.h"
#include "worker/cuda/device_queue.h"

namespace atl {

/// Measures and encodes the pseudo-gradients of one fragment on a device, and holds its residual there and,
/// for persistence, on the host. For the same inputs it has the bits of ErrorFeedback
/// (core/error_feedback.h).
///
/// Begin returns at once: the device encodes, and copies payload and residual into pinned memory, while the
/// caller goes on with its next steps. Fragments have encoders of their own, so several may be under way. Not
/// thread-safe.
class DeviceEncoder {
 public:
  struct Options {
    uint64_t elements = 0;
    CodecKind codec = CodecKind::kFp32;  // one with kernels (HasKernels)
    double beta = 0;
    ErrorFeedbackForm form = ErrorFeedbackForm::kCarry;
    std::vector<ElementRange> averaged = {};  // where the residual stays zero
  };

  /// What one encoder allocates, in bytes.
  struct Memory {
    uint64_t device = 0;
    uint64_t pinned = 0;
  };
  static Memory MemoryOf(const Options& options);

  /// The residual starts at zero. The queue outlives the encoder. Unimplemented for a codec without kernels.
  static absl::StatusOr<std::unique_ptr<DeviceEncoder>> Create(const Options& options, DeviceQueue& queue);

  /// Waits for a push that is under way.
  ~DeviceEncoder();
  DeviceEncoder(const DeviceEncoder&) = delete;
  DeviceEncoder& operator=(const DeviceEncoder&) = delete;

  /// Forgets what TakeBase took.
  void DropBase() { has_base_ = false; }
  /// Queues a copy of `values`, device memory as `local` of Begin. They are the base of the next Begin.
  absl::Status TakeBase(const float* values);

  /// Queues the push of base - local; `base` is copied to the device if TakeBase was not called since the
  /// last push. `local` is device memory at a multiple of 16 bytes; the work behind it in the queue may
  /// change it, nothing else may before End. A push that nobody ended is dropped.
  absl::Status Begin(std::span<const float> base, const float* local);

  /// Waits for the push and copies its payload. InvalidArgument naming the element when a value is not
  /// finite; the residual is then unchanged.
  absl::Status End(std::span<std::byte> payload);

  /// As those of ErrorFeedback. Not between Begin and End.
  absl::Status GiveBack(std::span<const std::byte> payload);
  std::span<const float> residual() const { return {Floats(kept_), options_.elements}; }
  absl::Status Restore(std::span<const float> residual);
  absl::Status Reset();

 private:
  DeviceEncoder(const Options& options, DeviceQueue& queue);

  absl::Status Allocate();
  absl::Status CopyOut();
  /// Takes what `kept_` has to the device.
  absl::Status Upload();
  void ClearAveraged();

  static float* Floats(const DeviceBlock& block) { return reinterpret_cast<float*>(block.get()); }

  const Options options_;
  const Codec& codec_;
  DeviceQueue& queue_;
  bool under_way_ = false;
  bool has_base_ = false;  // since TakeBase
  // Of the device.
  DeviceBlock base_;
  DeviceBlock residual_;
  DeviceBlock next_;
  DeviceBlock payload_;
  DeviceBlock squares_;
  DeviceBlock first_bad_;
  // Pinned.
  DeviceBlock base_in_;
  DeviceBlock payload_out_;
  DeviceBlock next_out_;
  DeviceBlock first_bad_out_;
  DeviceBlock kept_;  // the residual
};

}  // namespace atl

#endif  // ATOLL_WORKER_CUDA_DEVICE_ENCODER_H_

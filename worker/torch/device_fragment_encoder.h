#ifndef ATOLL_WORKER_TORCH_DEVICE_FRAGMENT_ENCODER_H_
#define ATOLL_WORKER_TORCH_DEVICE_FRAGMENT_ENCODER_H_

#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/sync/fragment_encoder.h"
#include "worker/cuda/device_encoder.h"
#include "worker/cuda/device_queue.h"
#include "worker/torch/flat_parameters.h"

namespace atl {

/// Encodes one fragment where the parameters are, by kernels (worker/cuda/device_encoder.h). Measure returns
/// while the device works, and the next inner steps may be queued; Encode waits for the push alone. Memory
/// besides that of the DeviceEncoder: 4 bytes per value of the fragment on the device, unless the fragment is
/// the whole model.
class DeviceFragmentEncoder final : public FragmentEncoder {
 public:
  /// `parameters` outlives the encoder. The queue is of their device and of the stream that computes with
  /// them; no other encoder has it. Unimplemented for a codec without kernels, and with privacy, whose noise
  /// comes from the processor.
  static absl::StatusOr<std::unique_ptr<DeviceFragmentEncoder>> Create(const EncoderOptions& options,
                                                                       const FlatParameters& parameters,
                                                                       std::unique_ptr<DeviceQueue> queue);

  void BeginSteps(const FragmentLayout& fragment, bool from_base) override;
  absl::Status Measure(const FragmentLayout& fragment, std::span<const float> base, Replica& replica,
                       std::span<float> room) override;
  absl::Status Encode(std::span<float> room, std::span<std::byte> payload) override;
  void GiveBack(std::span<const std::byte> payload) override;
  std::span<const float> residual() const override { return encoder_->residual(); }
  absl::Status Restore(std::span<const float> residual) override { return encoder_->Restore(residual); }
  void Reset() override;

 private:
  DeviceFragmentEncoder(const FlatParameters& parameters, std::unique_ptr<DeviceQueue> queue);

  /// The fragment's parameters as they are now, in one piece on the device.
  const float* InOnePiece(const FragmentLayout& fragment);

  const FlatParameters& parameters_;
  const std::unique_ptr<DeviceQueue> queue_;
  std::unique_ptr<DeviceEncoder> encoder_;
  torch::Tensor gathered_;  // the fragment's values; undefined while the fragment is the whole model
  absl::Status failed_;     // of a call that returns nothing: the next Measure tells
};

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_DEVICE_FRAGMENT_ENCODER_H_

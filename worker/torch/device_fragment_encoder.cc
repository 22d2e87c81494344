#include "worker/torch/device_fragment_encoder.h"

#include <utility>

#include "common/status.h"
#include "worker/torch/torch_status.h"

namespace atl {

DeviceFragmentEncoder::DeviceFragmentEncoder(const FlatParameters& parameters,
                                             std::unique_ptr<DeviceQueue> queue)
    : parameters_(parameters), queue_(std::move(queue)) {}

absl::StatusOr<std::unique_ptr<DeviceFragmentEncoder>> DeviceFragmentEncoder::Create(
    const EncoderOptions& options, const FlatParameters& parameters, std::unique_ptr<DeviceQueue> queue) {
  if (options.privacy.enabled()) {
    return absl::UnimplementedError(
        "with privacy a push is encoded on the processor, where its noise is made");
  }
  std::unique_ptr<DeviceFragmentEncoder> made(new DeviceFragmentEncoder(parameters, std::move(queue)));
  ATOLL_ASSIGN_OR_RETURN(made->encoder_, DeviceEncoder::Create({.elements = options.elements,
                                                                .codec = options.codec,
                                                                .beta = options.beta,
                                                                .form = options.form,
                                                                .averaged = options.averaged},
                                                               *made->queue_));
  // Now, so that a device without room for it says so before the first round.
  if (options.elements != parameters.layout().elements) {
    made->gathered_ = torch::zeros({static_cast<int64_t>(options.elements)}, parameters.values().options());
  }
  return made;
}

const float* DeviceFragmentEncoder::InOnePiece(const FragmentLayout& fragment) {
  const torch::NoGradGuard no_grad;
  // The plan of one fragment is the layout of the parameters.
  if (!gathered_.defined()) return parameters_.values().data_ptr<float>();
  for (const TensorSlot& slot : fragment.slots) {
    const TensorSlot& own = parameters_.layout().slots[slot.tensor];
    const auto size = static_cast<int64_t>(slot.elements);
    gathered_.narrow(0, static_cast<int64_t>(slot.offset), size)
        .copy_(parameters_.values().narrow(0, static_cast<int64_t>(own.offset), size));
  }
  return gathered_.data_ptr<float>();
}

void DeviceFragmentEncoder::BeginSteps(const FragmentLayout& fragment, bool from_base) {
  encoder_->DropBase();
  if (!from_base) return;
  failed_.Update(
      CatchTorch("encoding on the device", [&] { return encoder_->TakeBase(InOnePiece(fragment)); }));
}

absl::Status DeviceFragmentEncoder::Measure(const FragmentLayout& fragment, std::span<const float> base,
                                            Replica& /*replica*/, std::span<float> /*room*/) {
  ATOLL_RETURN_IF_ERROR(std::exchange(failed_, absl::OkStatus()));  // one round is dropped
  return CatchTorch("encoding on the device", [&] { return encoder_->Begin(base, InOnePiece(fragment)); });
}

absl::Status DeviceFragmentEncoder::Encode(std::span<float> /*room*/, std::span<std::byte> payload) {
  return encoder_->End(payload);
}

void DeviceFragmentEncoder::GiveBack(std::span<const std::byte> payload) {
  failed_.Update(encoder_->GiveBack(payload));
}

void DeviceFragmentEncoder::Reset() { failed_.Update(encoder_->Reset()); }

}  // namespace atl

#include "worker/torch/device_encoder_maker.h"

#include <string>
#include <utility>

#include "common/status.h"
#include "worker/torch/device_fragment_encoder.h"
#include "worker/torch/torch_status.h"

namespace atl {

DeviceEncoderMaker::DeviceEncoderMaker(DeviceQueueFactory queues, const FlatParameters& parameters,
                                       const Logger& log)
    : queues_(std::move(queues)), parameters_(parameters), log_(log) {}

std::unique_ptr<FragmentEncoder> DeviceEncoderMaker::Make(const EncoderOptions& options) {
  if (!queues_) return nullptr;
  auto encoder =
      CatchTorch("making an encoder", [&]() -> absl::StatusOr<std::unique_ptr<DeviceFragmentEncoder>> {
        ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<DeviceQueue> queue, queues_());
        return DeviceFragmentEncoder::Create(options, parameters_, std::move(queue));
      });
  const std::string why(encoder.status().message());
  if (!encoder.ok() && !absl::IsUnimplemented(encoder.status())) {
    log_.Warning("a fragment is encoded on the processor, because its encoder on the device failed",
                 {{"error", why}});
    return nullptr;
  }
  if (!std::exchange(told_, true)) {
    if (encoder.ok()) {
      log_.Info("pushes are encoded on the device", {{"device", parameters_.device().str()}});
    } else {
      log_.Info("pushes are encoded on the processor", {{"why", why}});
    }
  }
  if (!encoder.ok()) return nullptr;
  made_one_ = true;
  return *std::move(encoder);
}

}  // namespace atl

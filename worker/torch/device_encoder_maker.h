#ifndef ATOLL_WORKER_TORCH_DEVICE_ENCODER_MAKER_H_
#define ATOLL_WORKER_TORCH_DEVICE_ENCODER_MAKER_H_

#include <memory>

#include "client/sync/fragment_encoder.h"
#include "common/log.h"
#include "worker/cuda/device_queue.h"
#include "worker/torch/flat_parameters.h"

namespace atl {

/// Makes the encoders of a replica on a device, and says in the log where pushes are encoded.
class DeviceEncoderMaker {
 public:
  /// `queues` may be empty: nothing is encoded on the device. `parameters` outlives the encoders.
  DeviceEncoderMaker(DeviceQueueFactory queues, const FlatParameters& parameters, const Logger& log);

  /// Null when the processor is to encode: without queues, with privacy, with a codec without kernels, or
  /// when the device has no room, of which a warning tells.
  std::unique_ptr<FragmentEncoder> Make(const EncoderOptions& options);
  /// Whether the device holds encoders.
  bool made_one() const { return made_one_; }

 private:
  const DeviceQueueFactory queues_;
  const FlatParameters& parameters_;
  const Logger log_;
  bool told_ = false;
  bool made_one_ = false;
};

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_DEVICE_ENCODER_MAKER_H_

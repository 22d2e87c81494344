#include "worker/torch/device_queues.h"

namespace atl {

DeviceQueueFactory QueuesOf(const torch::Device& /*device*/) { return {}; }
StepGraphFactory GraphsOf(const torch::Device& /*device*/) { return {}; }

}  // namespace atl

#ifndef ATOLL_WORKER_TORCH_DEVICE_H_
#define ATOLL_WORKER_TORCH_DEVICE_H_

#include <string>

#include "absl/status/statusor.h"
#include "worker/torch/libtorch.h"

namespace atl {

/// "auto", "cpu", "cuda" or "cuda:N" as a device of this machine. Otherwise InvalidArgument, naming the
/// existing devices.
absl::StatusOr<torch::Device> ParseDevice(const std::string& text);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_DEVICE_H_

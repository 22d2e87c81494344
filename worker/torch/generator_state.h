#ifndef ATOLL_WORKER_TORCH_GENERATOR_STATE_H_
#define ATOLL_WORKER_TORCH_GENERATOR_STATE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "worker/torch/libtorch.h"

// The state of LibTorch's default generator of a device, as bytes. Functions throw what LibTorch throws.

namespace atl {

std::string GeneratorState(const torch::Device& device);
/// InvalidArgument when `state` is not one of this LibTorch's on this kind of device: it would throw.
absl::Status CheckGeneratorState(const torch::Device& device, std::string_view state);
void SetGeneratorState(const torch::Device& device, std::string_view state);

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_GENERATOR_STATE_H_

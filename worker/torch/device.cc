#include "worker/torch/device.h"

#include <torch/cuda.h>
#include <torch/version.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "worker/torch/cuda_driver.h"
#include "worker/torch/device_count.h"
#include "worker/torch/torch_replica.h"
#include "worker/torch/torch_status.h"

namespace atl {

uint32_t CudaDevices() {
  return torch::cuda::is_available() ? static_cast<uint32_t>(torch::cuda::device_count()) : 0;
}

absl::StatusOr<torch::Device> ParseDevice(const std::string& text) {
  const auto count = static_cast<int>(CudaDevices());
  if (text == "cpu") return torch::Device(torch::kCPU);
  if (text == "auto") return count > 0 ? torch::Device(torch::kCUDA, 0) : torch::Device(torch::kCPU);
  int index = 0;
  const bool numbered = text.rfind("cuda:", 0) == 0 && absl::SimpleAtoi(text.substr(5), &index) && index >= 0;
  if (text != "cuda" && !numbered) {
    return absl::InvalidArgumentError(
        absl::StrFormat("device '%s' is unknown; use auto, cpu, cuda or cuda:N", text));
  }
  if (index >= count) {
    if (count == 0) {
      return absl::InvalidArgumentError(
          absl::StrFormat("device '%s' cannot be used: %s", text, WhyNoCuda(ReadCudaFacts())));
    }
    return absl::InvalidArgumentError(
        absl::StrFormat("device '%s' is not there: LibTorch sees %d CUDA device(s), cuda:0 to cuda:%d; use "
                        "one of them, auto or "
                        "cpu",
                        text, count, count - 1));
  }
  return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(index));
}

absl::StatusOr<std::string> ResolveDevice(const std::string& device) {
  return CatchTorch("looking for devices", [&]() -> absl::StatusOr<std::string> {
    ATOLL_ASSIGN_OR_RETURN(const torch::Device found, ParseDevice(device));
    return found.str();
  });
}

std::string TorchVersion() { return TORCH_VERSION; }

}  // namespace atl

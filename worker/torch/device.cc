#include "worker/torch/device.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "worker/torch/device_count.h"

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
    return absl::InvalidArgumentError(absl::StrFormat(
        "device '%s' is not there: this LibTorch sees %d CUDA device(s); use auto or cpu", text, count));
  }
  return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(index));
}

}  // namespace atl

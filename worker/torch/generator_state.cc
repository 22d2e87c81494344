#include "worker/torch/generator_state.h"

#include <mutex>

#include "absl/strings/str_format.h"

namespace atl {
namespace {

at::Generator DefaultGenerator(const torch::Device& device) {
  return at::globalContext().defaultGenerator(device);
}

}  // namespace

std::string GeneratorState(const torch::Device& device) {
  at::Generator generator = DefaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  const torch::Tensor state = generator.get_state();  // bytes, on the host
  return std::string(reinterpret_cast<const char*>(state.data_ptr<uint8_t>()),
                     static_cast<size_t>(state.numel()));
}

absl::Status CheckGeneratorState(const torch::Device& device, std::string_view state) {
  const size_t expected = GeneratorState(device).size();
  if (state.size() == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("the kept state of the random generator has %d bytes, this LibTorch's on %s has %d",
                      state.size(), device.str(), expected));
}

void SetGeneratorState(const torch::Device& device, std::string_view state) {
  torch::Tensor bytes = torch::empty({static_cast<int64_t>(state.size())}, torch::kUInt8);
  std::copy(state.begin(), state.end(), reinterpret_cast<char*>(bytes.data_ptr<uint8_t>()));
  at::Generator generator = DefaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(bytes);
}

}  // namespace atl

#include "worker/torch/rotary.h"

#include <numbers>
#include <vector>

namespace atl {

namespace {

torch::Tensor Turn(const torch::Tensor& x, const torch::Tensor& cosines, const torch::Tensor& sines) {
  const std::vector<torch::Tensor> halves = x.to(torch::kFloat32).chunk(2, -1);
  return torch::cat({halves[0] * cosines - halves[1] * sines, halves[1] * cosines + halves[0] * sines}, -1);
}

}  // namespace

torch::Tensor RotaryFrequencies(int64_t head_dim, double theta, const RopeScaling& scaling) {
  const torch::Tensor exponents = torch::arange(0, head_dim, 2, torch::kFloat32) / head_dim;
  const torch::Tensor plain = torch::pow(theta, exponents).reciprocal();
  if (scaling.factor == 1) return plain;
  const double original = scaling.original_context;
  const double low = scaling.low_freq_factor;
  const double high = scaling.high_freq_factor;
  const torch::Tensor wavelengths = 2 * std::numbers::pi / plain;
  const torch::Tensor share = (original / wavelengths - low) / (high - low);
  const torch::Tensor mean = (1 - share) * plain / scaling.factor + share * plain;
  const torch::Tensor stretched = torch::where(wavelengths > original / low, plain / scaling.factor, mean);
  return torch::where(wavelengths < original / high, plain, stretched);
}

RotaryPositions::RotaryPositions(const torch::Tensor& frequencies, int64_t context,
                                 const torch::Device& device) {
  const torch::Tensor angles =
      torch::outer(torch::arange(context, torch::kFloat32), frequencies).unsqueeze(1);
  cosines_ = angles.cos().to(device);
  sines_ = angles.sin().to(device);
}

torch::Tensor RotaryPositions::Rotate(const torch::Tensor& x, int64_t first) const {
  return Turn(x, cosines_.narrow(0, first, x.size(1)), sines_.narrow(0, first, x.size(1)));
}

torch::Tensor RotaryPositions::Rotate(const torch::Tensor& x, const torch::Tensor& positions) const {
  return Turn(x, cosines_.index({positions}), sines_.index({positions}));
}

}  // namespace atl

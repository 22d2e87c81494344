#include "client/sync/secret_noise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace atl {

void SecretNoise::AddTo(std::span<float> values, double deviation) {
  constexpr size_t kBatch = 1024;  // values
  std::array<uint64_t, kBatch> bits;
  for (size_t first = 0; first < values.size(); first += kBatch) {
    const std::span<float> batch = values.subspan(first, std::min(kBatch, values.size() - first));
    stream_.Fill(std::as_writable_bytes(std::span(bits)));
    for (size_t i = 0; i < batch.size(); i += 2) {
      // (0, 1], whose logarithm is finite, and [0, 1).
      const double radius = static_cast<double>((bits[i] >> 11) + 1) * 0x1.0p-53;
      const double turn = static_cast<double>(bits[i + 1] >> 11) * 0x1.0p-53;
      const double length = deviation * std::sqrt(-2 * std::log(radius));
      const double angle = 2 * std::numbers::pi * turn;
      batch[i] = static_cast<float>(static_cast<double>(batch[i]) + length * std::cos(angle));
      if (i + 1 == batch.size()) break;
      batch[i + 1] = static_cast<float>(static_cast<double>(batch[i + 1]) + length * std::sin(angle));
    }
  }
  bits.fill(0);
}

}  // namespace atl

#ifndef ATOLL_CLIENT_SYNC_SECRET_NOISE_H_
#define ATOLL_CLIENT_SYNC_SECRET_NOISE_H_

#include <span>

#include "common/secret_stream.h"
#include "core/privacy.h"

namespace atl {

/// Gaussian noise that the coordinator cannot predict and nobody can make again (common/secret_stream.h):
/// pairs by Box and Muller from 53-bit uniforms, in float64, rounded to float32 with the sum. Tails end at
/// 8.6 standard deviations. Not thread-safe.
class SecretNoise final : public GaussianSource {
 public:
  void AddTo(std::span<float> values, double deviation) override;

 private:
  SecretStream stream_;
};

}  // namespace atl

#endif  // ATOLL_CLIENT_SYNC_SECRET_NOISE_H_

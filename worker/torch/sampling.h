#ifndef ATOLL_WORKER_TORCH_SAMPLING_H_
#define ATOLL_WORKER_TORCH_SAMPLING_H_

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/token_width.h"

namespace atl {

/// Draws tokens from a model's logits. No LibTorch. Not thread-safe.
class TokenSampler {
 public:
  /// temperature 0: always the most likely token. top_k 0: no restriction.
  TokenSampler(double temperature, uint32_t top_k, uint64_t seed);

  /// One token from softmax(logits / temperature) over the top_k largest. FailedPrecondition when a logit is
  /// not finite. Requires 1 <= logits.size() < 2^32.
  absl::StatusOr<TokenId> Draw(std::span<const float> logits);

 private:
  const double temperature_;
  const uint32_t top_k_;
  std::mt19937_64 random_;
  std::vector<uint32_t> order_;
  std::vector<double> weights_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_SAMPLING_H_

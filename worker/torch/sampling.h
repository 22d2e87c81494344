#ifndef ATOLL_WORKER_TORCH_SAMPLING_H_
#define ATOLL_WORKER_TORCH_SAMPLING_H_

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/token_width.h"

namespace atl {

/// How a token is chosen from a model's output. The rules apply in this order, as in Hugging Face's
/// transformers.
struct SamplingOptions {
  double temperature = 0.8;  // 0: the most likely token each time
  uint32_t top_k = 0;        // draw among this many most likely tokens; 0: all
  /// Draw among the fewest most likely tokens that have at least this share of the probability (Holtzman et
  /// al., arXiv 1904.09751); 1: all.
  double top_p = 1;
  uint64_t seed = 1337;
};

/// Draws tokens from a model's logits. No LibTorch. Not thread-safe.
class TokenSampler {
 public:
  explicit TokenSampler(const SamplingOptions& options);

  /// One token from softmax(logits / temperature) over the tokens that top_k and top_p leave; of equal ones
  /// the lower stays. FailedPrecondition when a logit is not finite. Requires 1 <= logits.size() < 2^32.
  absl::StatusOr<TokenId> Draw(std::span<const float> logits);

 private:
  /// Puts the tokens to draw among into order_; returns how many there are.
  size_t Keep(std::span<const float> logits);

  const SamplingOptions options_;
  std::mt19937_64 random_;
  std::vector<uint32_t> order_;
  std::vector<double> weights_;
};

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_SAMPLING_H_

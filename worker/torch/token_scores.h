#ifndef ATOLL_WORKER_TORCH_TOKEN_SCORES_H_
#define ATOLL_WORKER_TORCH_TOKEN_SCORES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/token_width.h"

// No LibTorch type shows here: callers of the replica use these types.

namespace atl {

/// A text whose tokens are to be scored.
struct ScoreRequest {
  /// At most context + 1: the last token needs no place in the context. Outlives the call.
  std::span<const TokenId> tokens = {};
  /// The first token whose score is wanted; those before it are read only. 1 <= first <= tokens.size().
  size_t first = 1;
};

/// A token that could stand in a place of a text.
struct RankedToken {
  TokenId token = 0;
  float log_probability = 0;  // natural logarithm
};

struct TokenScores {
  /// ln p(token | the tokens before it) of the tokens [first, size).
  std::vector<float> log_probabilities = {};
  /// The most likely tokens, most likely first, in each of these places, and in the place after the text if
  /// the whole text fits into the context. Empty unless they were asked for.
  std::vector<std::vector<RankedToken>> ranked = {};
};

/// kOfRun: as the run trains (inner.precision). kFloat32: so that the scores of two runs can be compared.
enum class ScorePrecision : uint8_t { kOfRun, kFloat32 };

struct ScoreOptions {
  uint32_t ranked = 0;  // most likely tokens to name in each place; at most the vocabulary
  ScorePrecision precision = ScorePrecision::kOfRun;
  /// Asked between texts; true ends the call with Cancelled. Empty: nothing ends it.
  std::function<bool()> interrupted = {};
};

}  // namespace atl

#endif  // ATOLL_WORKER_TORCH_TOKEN_SCORES_H_

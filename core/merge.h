#ifndef ATOLL_CORE_MERGE_H_
#define ATOLL_CORE_MERGE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/codec.h"
#include "core/contribution.h"
#include "core/run_options.h"

namespace atoll {

/// What a worker's weight is computed from.
struct WeightInput {
  uint64_t tokens = 0;  // trained on, capped by what was assigned
  uint32_t steps = 0;   // inner steps; 0 counts as 1
};

/// Weights w_i / sum(w), computed in float64 in the given order and then rounded to float32:
/// uniform w = 1; tokens w = tokens; tokens_squared_per_step w = tokens^2 / steps (Decoupled DiLoCo, arXiv
/// 2604.21428). When no input has any weight (all tokens are 0) they are uniform. One input always has weight
/// exactly 1.
std::vector<float> NormalisedWeights(MergeWeighting weighting, std::span<const WeightInput> inputs);
std::vector<float> NormalisedWeights(MergeWeighting weighting, std::span<const Contribution> contributions);

/// Puts contributions in summation order (by key: fragment, base, worker name, sequence), which makes the sum
/// independent of the order of arrival.
void SortForSummation(std::vector<Contribution>& contributions);

/// One summand of a merge. The payload has been validated for the number of elements and outlives the call.
struct MergeInput {
  const Codec* codec = nullptr;
  std::span<const std::byte> payload = {};
  float weight = 0;
};

/// out[i] = sum over inputs, in the given order, of weight * decoded[first + i], in float32. The inputs'
/// order is the caller's (SortForSummation). first is a multiple of kChunkAlignment. The bits of a value do
/// not depend on how [0, elements) is cut into ranges at multiples of kChunkAlignment, nor on the threads
/// that compute them.
void WeightedMeanRange(std::span<const MergeInput> inputs, uint64_t elements, uint64_t first,
                       std::span<float> out);

}  // namespace atoll

#endif  // ATOLL_CORE_MERGE_H_

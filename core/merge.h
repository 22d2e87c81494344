#ifndef ATOLL_CORE_MERGE_H_
#define ATOLL_CORE_MERGE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/codec.h"
#include "core/contribution.h"
#include "core/run_options.h"

namespace atl {

/// What a worker's weight is computed from.
struct WeightInput {
  uint64_t tokens = 0;     // trained on, capped by what was assigned
  uint32_t steps = 0;      // inner steps; 0 counts as 1
  uint64_t staleness = 0;  // versions that its base lies behind the round's
};

/// How many versions a contribution's base lies behind the round's base; 0 when it does not.
uint64_t Staleness(const Contribution& contribution, Version round_base);

/// Weights w_i / sum(w), computed in float64 in the given order and then rounded to float32:
/// uniform w = 1; tokens w = tokens; tokens_squared_per_step w = tokens^2 / steps (Decoupled DiLoCo, arXiv
/// 2604.21428); each divided by (1 + staleness / 4). When no input has any weight (all tokens are 0) they are
/// uniform before that division. One input always has weight exactly 1: weights are relative within a round.
std::vector<float> NormalisedWeights(MergeWeighting weighting, std::span<const WeightInput> inputs);
/// The same for a round on this base: its version is the one after.
std::vector<float> NormalisedWeights(MergeWeighting weighting, std::span<const Contribution> contributions,
                                     Version round_base);

/// Puts contributions in summation order (by key: fragment, base, worker name, sequence), which makes the sum
/// independent of the order of arrival.
void SortForSummation(std::vector<Contribution>& contributions);

/// One contribution as a merge sees it. The payload has been validated for the number of elements and
/// outlives whatever holds this.
struct MergeInput {
  const Codec* codec = nullptr;
  std::span<const std::byte> payload = {};
  float weight = 0;  // normalised
  double norm = 0;   // L2 of the decoded payload, as recorded when it was staged (PayloadNorm)
};

}  // namespace atl

#endif  // ATOLL_CORE_MERGE_H_

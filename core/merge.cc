#include "core/merge.h"

#include <algorithm>
#include <numeric>

namespace atl {
namespace {

double RawWeight(MergeWeighting weighting, const WeightInput& input) {
  const auto tokens = static_cast<double>(input.tokens);
  switch (weighting) {
    case MergeWeighting::kUniform:
      return 1;
    case MergeWeighting::kTokens:
      return tokens;
    case MergeWeighting::kTokensSquaredPerStep:
      return tokens * tokens / static_cast<double>(std::max(input.steps, uint32_t{1}));
  }
  return 1;
}

}  // namespace

uint64_t Staleness(const Contribution& contribution, Version round_base) {
  const Version base = contribution.key.base;
  return base < round_base ? round_base.value() - base.value() : 0;
}

std::vector<float> NormalisedWeights(MergeWeighting weighting, std::span<const WeightInput> inputs) {
  std::vector<double> raw(inputs.size());
  std::transform(inputs.begin(), inputs.end(), raw.begin(),
                 [weighting](const WeightInput& input) { return RawWeight(weighting, input); });
  if (std::ranges::all_of(raw, [](double w) { return w <= 0; })) std::ranges::fill(raw, 1.0);
  for (size_t i = 0; i < raw.size(); ++i) raw[i] /= 1.0 + static_cast<double>(inputs[i].staleness) / 4;
  const double sum = std::accumulate(raw.begin(), raw.end(), 0.0);
  std::vector<float> weights(raw.size());
  std::transform(raw.begin(), raw.end(), weights.begin(),
                 [sum](double w) { return static_cast<float>(w / sum); });
  return weights;
}

std::vector<float> NormalisedWeights(MergeWeighting weighting, std::span<const Contribution> contributions,
                                     Version round_base) {
  std::vector<WeightInput> inputs;
  inputs.reserve(contributions.size());
  for (const Contribution& c : contributions) {
    inputs.push_back({.tokens = c.tokens, .steps = c.steps, .staleness = Staleness(c, round_base)});
  }
  return NormalisedWeights(weighting, inputs);
}

void SortForSummation(std::vector<Contribution>& contributions) {
  std::sort(contributions.begin(), contributions.end(),
            [](const Contribution& a, const Contribution& b) { return a.key < b.key; });
}

}  // namespace atl

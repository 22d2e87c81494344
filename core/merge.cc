#include "core/merge.h"

#include <algorithm>
#include <numeric>

#include "core/fragment_plan.h"

namespace atoll {
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

std::vector<float> NormalisedWeights(MergeWeighting weighting, std::span<const WeightInput> inputs) {
  std::vector<double> raw(inputs.size());
  std::transform(inputs.begin(), inputs.end(), raw.begin(),
                 [weighting](const WeightInput& input) { return RawWeight(weighting, input); });
  double sum = std::accumulate(raw.begin(), raw.end(), 0.0);
  if (sum <= 0) {
    std::fill(raw.begin(), raw.end(), 1.0);
    sum = static_cast<double>(raw.size());
  }
  std::vector<float> weights(raw.size());
  std::transform(raw.begin(), raw.end(), weights.begin(),
                 [sum](double w) { return static_cast<float>(w / sum); });
  return weights;
}

std::vector<float> NormalisedWeights(MergeWeighting weighting, std::span<const Contribution> contributions) {
  std::vector<WeightInput> inputs;
  inputs.reserve(contributions.size());
  for (const Contribution& c : contributions) inputs.push_back({.tokens = c.tokens, .steps = c.steps});
  return NormalisedWeights(weighting, inputs);
}

void SortForSummation(std::vector<Contribution>& contributions) {
  std::sort(contributions.begin(), contributions.end(),
            [](const Contribution& a, const Contribution& b) { return a.key < b.key; });
}

void WeightedMeanRange(std::span<const MergeInput> inputs, uint64_t elements, uint64_t first,
                       std::span<float> out) {
  for (uint64_t done = 0; done < out.size(); done += kChunkAlignment) {
    const std::span<float> block = out.subspan(done, std::min<uint64_t>(kChunkAlignment, out.size() - done));
    std::fill(block.begin(), block.end(), 0.0f);
    for (const MergeInput& input : inputs) {
      input.codec->AccumulateRange(input.payload, elements, first + done, input.weight, block);
    }
  }
}

}  // namespace atoll

#include "core/merge.h"

#include <algorithm>
#include <thread>

#include "core/block_merger.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/test_values.h"

namespace atl {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

TEST(NormalisedWeights, FollowTheConfiguration) {
  const std::vector<WeightInput> inputs = {{.tokens = 100, .steps = 10}, {.tokens = 300, .steps = 10}};
  EXPECT_THAT(NormalisedWeights(MergeWeighting::kUniform, inputs), ElementsAre(0.5f, 0.5f));
  EXPECT_THAT(NormalisedWeights(MergeWeighting::kTokens, inputs), ElementsAre(0.25f, 0.75f));
  EXPECT_THAT(NormalisedWeights(MergeWeighting::kTokensSquaredPerStep, inputs), ElementsAre(0.1f, 0.9f));
}

TEST(NormalisedWeights, OfOneIsExactlyOneAndOfNothingIsUniform) {
  const std::vector<WeightInput> one = {{.tokens = 12345, .steps = 0}};
  EXPECT_THAT(NormalisedWeights(MergeWeighting::kTokensSquaredPerStep, one), ElementsAre(1.0f));
  const std::vector<WeightInput> idle(4);
  EXPECT_THAT(NormalisedWeights(MergeWeighting::kTokens, idle), ElementsAre(0.25f, 0.25f, 0.25f, 0.25f));
  EXPECT_TRUE(NormalisedWeights(MergeWeighting::kTokens, std::span<const WeightInput>()).empty());
}

TEST(NormalisedWeights, OfLateContributionsAreDividedByOneAndAQuarterOfTheirStaleness) {
  const std::vector<Contribution> contributions = {
      {.key = {.base = Version(7)}, .tokens = 100, .steps = 1},   // in time
      {.key = {.base = Version(3)}, .tokens = 100, .steps = 1},   // four versions late: half
      {.key = {.base = Version(6)}, .tokens = 125, .steps = 1},   // one: four fifths
      {.key = {.base = Version(9)}, .tokens = 150, .steps = 1}};  // never above one
  EXPECT_THAT(NormalisedWeights(MergeWeighting::kTokens, contributions, Version(7)),
              ElementsAre(0.25f, 0.125f, 0.25f, 0.375f));
  EXPECT_EQ(Staleness(contributions[1], Version(7)), 4u);
  EXPECT_EQ(Staleness(contributions[3], Version(7)), 0u);
}

TEST(NormalisedWeights, OfALateOneThatIsAloneAndOfLateOnesThatDidNothing) {
  const std::vector<Contribution> alone = {{.key = {.base = Version(1)}, .tokens = 7, .steps = 1}};
  EXPECT_THAT(NormalisedWeights(MergeWeighting::kTokens, alone, Version(9)), ElementsAre(1.0f));
  const std::vector<Contribution> idle = {{.key = {.base = Version(4)}}, {.key = {.base = Version(0)}}};
  EXPECT_THAT(NormalisedWeights(MergeWeighting::kTokens, idle, Version(4)),
              ElementsAre(FloatEq(2.0f / 3), FloatEq(1.0f / 3)));
}

struct Round {
  std::vector<std::vector<std::byte>> payloads;
  std::vector<MergeInput> inputs;
};

Round MakeRound(size_t elements) {
  Round round;
  const float weights[] = {0.1f, 0.45f, 0.25f, 0.2f};
  for (size_t w = 0; w < 4; ++w) {
    const Codec& codec = CodecFor(kCodecKinds[w]);
    round.payloads.push_back(Encoded(codec, RandomValues(elements, 20 + w)));
    round.inputs.push_back({.codec = &codec, .payload = {}, .weight = weights[w]});
  }
  for (size_t w = 0; w < 4; ++w) round.inputs[w].payload = round.payloads[w];
  return round;
}

TEST(WeightedMean, IsTheMean) {
  constexpr size_t kElements = 9000;
  const Round round = MakeRound(kElements);
  std::vector<float> mean(kElements);
  MergeRange(WeightedMeanPlan(round.inputs, kElements), 0, mean);
  std::vector<double> reference(kElements);
  for (const MergeInput& input : round.inputs) {
    const std::vector<float> decoded = Decoded(*input.codec, input.payload, kElements);
    for (size_t i = 0; i < kElements; ++i) reference[i] += double{input.weight} * decoded[i];
  }
  for (size_t i = 0; i < kElements; ++i)
    ASSERT_NEAR(mean[i], reference[i], 1e-8 + 1e-6 * std::abs(reference[i]));
}

TEST(WeightedMean, BitsDoNotDependOnRangesOrThreads) {
  constexpr size_t kElements = 10 * 4096 + 256;
  const Round round = MakeRound(kElements);
  std::vector<float> whole(kElements);
  const MergePlan plan = WeightedMeanPlan(round.inputs, kElements);
  MergeRange(plan, 0, whole);
  for (const size_t threads : {1, 2, 5}) {
    std::vector<float> pieces(kElements, -1.0f);
    std::vector<std::thread> pool;
    for (size_t t = 0; t < threads; ++t) {
      pool.emplace_back([&, t] {
        for (size_t first = t * 4096; first < kElements; first += threads * 4096) {
          const size_t n = std::min<size_t>(4096, kElements - first);
          MergeRange(plan, first, std::span(pieces).subspan(first, n));
        }
      });
    }
    for (std::thread& thread : pool) thread.join();
    EXPECT_EQ(Bits(pieces), Bits(whole)) << threads;
  }
}

TEST(SortForSummation, MakesTheSumIndependentOfArrival) {
  std::vector<Contribution> sorted;
  for (const char* name : {"w-0", "w-1", "w-10", "w-2", "z"}) {
    sorted.push_back({.key = {.base = Version(3), .worker = name}});
  }
  std::vector<Contribution> arrived = sorted;
  std::mt19937 engine(5);
  for (int trial = 0; trial < 20; ++trial) {
    std::shuffle(arrived.begin(), arrived.end(), engine);
    std::vector<Contribution> order = arrived;
    SortForSummation(order);
    ASSERT_EQ(order, sorted);
  }
}

TEST(WeightedMean, OrderOfSummationMatters) {
  // Why the order must be fixed at all: the same numbers summed in another order give other bits.
  constexpr size_t kElements = 4096;
  const Round round = MakeRound(kElements);
  std::vector<MergeInput> reversed(round.inputs.rbegin(), round.inputs.rend());
  std::vector<float> forward(kElements), backward(kElements);
  MergeRange(WeightedMeanPlan(round.inputs, kElements), 0, forward);
  MergeRange(WeightedMeanPlan(reversed, kElements), 0, backward);
  EXPECT_NE(Bits(forward), Bits(backward));
}

}  // namespace
}  // namespace atl

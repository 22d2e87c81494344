// Every loop over tensors, as compiled for each instruction set that this machine has, against the baseline's
// bits. Lengths that are no multiple of any vector exercise the tails.

#include <string>
#include <vector>

#include "common/instruction_set.h"
#include "core/fused_outer_step.h"
#include "core/payload_stats.h"
#include "gtest/gtest.h"
#include "tests/core/test_values.h"

namespace atl {
namespace {

constexpr size_t kLengths[] = {1, 3, 17, 255, 256, 300, 4095, 4096, 4097, 13001};

/// Tiny, ordinary and huge values side by side, with zeros of both signs.
std::vector<float> MixedValues(size_t n, uint64_t seed) {
  std::vector<float> values = RandomValues(n, seed);
  for (size_t i = 0; i < n; ++i) {
    if (i % 11 == 3) values[i] = 0;
    if (i % 23 == 5) values[i] = -0.0f;
    if (i % 4096 > 4000) values[i] *= 1e-38f;  // subnormal; for some blocks the scale as well
    if (i % 611 == 7) values[i] *= 1e9f;
  }
  return values;
}

/// Calls body once per instruction set and expects the same result each time.
template <typename Body>
void ExpectSameOnAll(const Body& body) {
  const ForcedInstructionSet baseline(InstructionSet::kBaseline);
  const auto expected = body();
  for (const InstructionSet set : RunnableInstructionSets()) {
    const ForcedInstructionSet forced(set);
    EXPECT_EQ(body(), expected) << std::string(InstructionSetName(set));
  }
}

class OnEveryInstructionSet : public testing::TestWithParam<CodecKind> {
 protected:
  const Codec& codec_ = CodecFor(GetParam());
};
INSTANTIATE_TEST_SUITE_P(All, OnEveryInstructionSet, testing::ValuesIn(kCodecKinds),
                         [](const auto& test) { return std::string(CodecName(test.param)); });

TEST_P(OnEveryInstructionSet, EncodesTheSameBytes) {
  for (const size_t n : kLengths) {
    const std::vector<float> values = MixedValues(n, n);
    ExpectSameOnAll([&] { return Encoded(codec_, values); });
  }
}

TEST_P(OnEveryInstructionSet, DecodesTheSameBits) {
  for (const size_t n : kLengths) {
    const std::vector<std::byte> payload = Encoded(codec_, MixedValues(n, n));
    ExpectSameOnAll([&] { return Bits(Decoded(codec_, payload, n)); });
    ExpectSameOnAll([&] {
      std::vector<float> sum = RandomValues(n, 1);
      codec_.AccumulateRange(payload, n, 0, 0.3f, sum);
      return Bits(sum);
    });
    ExpectSameOnAll([&] { return *PayloadNorm(codec_, payload, n); });
  }
}

TEST_P(OnEveryInstructionSet, MergesAndStepsToTheSameBits) {
  constexpr size_t kElements = 2 * 4096 + 123;
  std::vector<std::vector<std::byte>> payloads;
  std::vector<MergeInput> inputs;
  for (uint64_t w = 0; w < 3; ++w) payloads.push_back(Encoded(codec_, RandomValues(kElements, w)));
  for (const auto& payload : payloads)
    inputs.push_back({.codec = &codec_, .payload = payload, .weight = 0.3f});
  MergePlan plan = WeightedMeanPlan(inputs, kElements);
  plan.averaged = {{256, 768}, {4096, 4352}};
  for (const auto kind : {OuterOptimizerKind::kNesterov, OuterOptimizerKind::kSgd, OuterOptimizerKind::kAdam,
                          OuterOptimizerKind::kDelayedNesterov}) {
    ExpectSameOnAll([&] {
      std::vector<float> theta = RandomValues(kElements, 7, 1.0f);
      std::vector<float> m = RandomValues(kElements, 8);
      std::vector<float> v(kElements, 0.01f);
      const std::vector<std::span<float>> state = {m, v};
      EXPECT_TRUE(MergeAndStepRange(plan, {.optimizer = kind}, 4, 0, theta, theta,
                                    std::span(state).first(OuterStateVectors(kind)))
                      .ok());
      return std::vector{Bits(theta), Bits(m), Bits(v)};
    });
  }
}

TEST(InstructionSet, TheWidestOneIsTaken) {
  EXPECT_EQ(ChosenInstructionSet(), RunnableInstructionSets().back());
  {
    const ForcedInstructionSet forced(InstructionSet::kBaseline);
    EXPECT_EQ(ChosenInstructionSet(), InstructionSet::kBaseline);
  }
  EXPECT_EQ(ChosenInstructionSet(), RunnableInstructionSets().back());
}

}  // namespace
}  // namespace atl

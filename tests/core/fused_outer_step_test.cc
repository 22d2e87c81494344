#include "core/fused_outer_step.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "core/block_merger.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/test_values.h"

namespace atl {
namespace {

using testing::HasSubstr;

/// A fragment with its optimizer state, and contributions to one round of it.
struct Fixture {
  explicit Fixture(size_t n, OuterOptions outer = {}, std::vector<CodecKind> codecs = {CodecKind::kFp32})
      : options(outer), theta(RandomValues(n, 1, 1.0f)), m(RandomValues(n, 2)), v(n, 0.01f) {
    for (size_t w = 0; w < codecs.size(); ++w) {
      payloads.push_back(Encoded(CodecFor(codecs[w]), RandomValues(n, 10 + w)));
      inputs.push_back({.codec = &CodecFor(codecs[w]), .weight = 1.0f / static_cast<float>(codecs.size())});
    }
    for (size_t w = 0; w < codecs.size(); ++w) inputs[w].payload = payloads[w];
  }

  absl::Status Step(uint64_t first, uint64_t n) {
    const std::vector<std::span<float>> state = {std::span(m).subspan(first, n),
                                                 std::span(v).subspan(first, n)};
    const std::span<float> part = std::span(theta).subspan(first, n);
    MergePlan plan = WeightedMeanPlan(inputs, theta.size());
    plan.averaged = averaged;
    return MergeAndStepRange(plan, options, 3, first, part, part,
                             std::span(state).first(OuterStateVectors(options.optimizer)));
  }

  OuterOptions options;
  std::vector<float> theta, m, v;
  std::vector<std::vector<std::byte>> payloads;
  std::vector<MergeInput> inputs;
  std::vector<ElementRange> averaged = {};
};

const std::vector<CodecKind> kMixed = {CodecKind::kFp32, CodecKind::kInt8, CodecKind::kBf16,
                                       CodecKind::kFp16};

TEST(MergeAndStep, IsMergeThenStep) {
  for (const auto kind : {OuterOptimizerKind::kNesterov, OuterOptimizerKind::kSgd, OuterOptimizerKind::kAdam,
                          OuterOptimizerKind::kDelayedNesterov}) {
    constexpr size_t kElements = 3 * 4096 + 512;
    Fixture fused(kElements, {.optimizer = kind}, kMixed);
    Fixture apart = fused;
    for (size_t w = 0; w < kMixed.size(); ++w) {
      fused.inputs[w].payload = fused.payloads[w];
      apart.inputs[w].payload = apart.payloads[w];
    }
    ASSERT_TRUE(fused.Step(0, kElements).ok());
    std::vector<float> mean(kElements);
    MergeRange(WeightedMeanPlan(apart.inputs, kElements), 0, mean);
    const std::vector<std::span<float>> state = {apart.m, apart.v};
    OuterStepRange(apart.options, 3, mean, apart.theta, apart.theta,
                   std::span(state).first(OuterStateVectors(kind)));
    EXPECT_EQ(Bits(fused.theta), Bits(apart.theta));
    EXPECT_EQ(Bits(fused.m), Bits(apart.m));
    EXPECT_EQ(Bits(fused.v), Bits(apart.v));
  }
}

TEST(MergeAndStep, BitsDoNotDependOnChunksOrThreads) {
  constexpr size_t kElements = 9 * 4096 + 768;
  Fixture whole(kElements, {}, kMixed);
  ASSERT_TRUE(whole.Step(0, kElements).ok());
  for (const size_t threads : {2, 4}) {
    Fixture pieces(kElements, {}, kMixed);
    std::vector<std::thread> pool;
    for (size_t t = 0; t < threads; ++t) {
      pool.emplace_back([&, t] {
        for (size_t first = t * 8192; first < kElements; first += threads * 8192) {
          EXPECT_TRUE(pieces.Step(first, std::min<size_t>(8192, kElements - first)).ok());
        }
      });
    }
    for (std::thread& thread : pool) thread.join();
    EXPECT_EQ(Bits(pieces.theta), Bits(whole.theta));
    EXPECT_EQ(Bits(pieces.m), Bits(whole.m));
  }
}

// Inside a block of 4096, over its end, whole blocks, at the end of the vector.
const std::vector<ElementRange> kAveraged = {
    {256, 512}, {3840, 4608}, {8192, 3 * 4096 + 256}, {4 * 4096, 4 * 4096 + 256}};

bool IsAveraged(size_t i) {
  return std::ranges::any_of(kAveraged, [i](const ElementRange& r) { return r.begin <= i && i < r.end; });
}

TEST(MergeAndStep, AveragedTensorsBecomeTheMeanWithoutOptimizerAndState) {
  constexpr size_t kElements = 4 * 4096 + 256;
  for (const auto kind : {OuterOptimizerKind::kNesterov, OuterOptimizerKind::kSgd, OuterOptimizerKind::kAdam,
                          OuterOptimizerKind::kDelayedNesterov}) {
    const OuterOptions options = {.optimizer = kind, .delay = 3};
    Fixture mixed(kElements, options, kMixed);
    mixed.averaged = kAveraged;
    const std::vector<float> base = mixed.theta, m = mixed.m, v = mixed.v;
    std::vector<std::vector<float>> deltas;
    for (size_t w = 0; w < kMixed.size(); ++w) {
      deltas.push_back(Decoded(CodecFor(kMixed[w]), mixed.payloads[w], kElements));
    }
    ASSERT_TRUE(mixed.Step(0, kElements).ok());
    Fixture plain(kElements, options, kMixed);
    ASSERT_TRUE(plain.Step(0, kElements).ok());
    const float share = kind == OuterOptimizerKind::kDelayedNesterov ? static_cast<float>(1.0 / 3) : 1.0F;
    for (size_t i = 0; i < kElements; ++i) {
      if (!IsAveraged(i)) {
        ASSERT_EQ(mixed.theta[i], plain.theta[i]) << i;
        ASSERT_EQ(mixed.m[i], plain.m[i]) << i;
        ASSERT_EQ(mixed.v[i], plain.v[i]) << i;
        continue;
      }
      float mean = 0;
      double of_values = 0;  // the mean of what the workers have
      for (const std::vector<float>& delta : deltas) {
        const float product = 0.25F * delta[i];
        mean += product;
        of_values += 0.25 * (double{base[i]} - double{delta[i]});
      }
      const float moved = share * mean;
      const float expected = base[i] - moved;
      ASSERT_EQ(mixed.theta[i], expected) << i;
      if (share == 1.0F) {
        ASSERT_NEAR(mixed.theta[i], of_values, 0x1p-22 * std::abs(of_values) + 1e-9) << i;
      }
      ASSERT_EQ(mixed.m[i], m[i]) << i;
      ASSERT_EQ(mixed.v[i], v[i]) << i;
    }
  }
}

TEST(MergeAndStep, AveragedTensorsDoNotDependOnRanges) {
  constexpr size_t kElements = 4 * 4096 + 256;
  Fixture whole(kElements, {}, kMixed);
  whole.averaged = kAveraged;
  ASSERT_TRUE(whole.Step(0, kElements).ok());
  Fixture pieces(kElements, {}, kMixed);
  pieces.averaged = kAveraged;
  for (size_t first = 0; first < kElements; first += 4096) {
    ASSERT_TRUE(pieces.Step(first, std::min<size_t>(4096, kElements - first)).ok());
  }
  EXPECT_EQ(Bits(pieces.theta), Bits(whole.theta));
  EXPECT_EQ(Bits(pieces.m), Bits(whole.m));
}

TEST(MergeAndStep, AnAveragedValueThatOverflowsIsSeen) {
  Fixture overflow(4096);
  overflow.averaged = {{256, 512}};
  overflow.inputs[0].weight = 2;
  std::vector<float> delta(4096);
  delta[300] = -std::numeric_limits<float>::max();
  overflow.payloads[0] = Encoded(CodecFor(CodecKind::kFp32), delta);
  overflow.inputs[0].payload = overflow.payloads[0];
  EXPECT_THAT(std::string(overflow.Step(0, 4096).message()), HasSubstr("parameter of element 300"));
}

TEST(MergeAndStep, NothingNonFiniteIsLetThrough) {
  Fixture overflow(10000);
  overflow.theta[7000] = std::numeric_limits<float>::max();
  overflow.m[7000] = -std::numeric_limits<float>::max();
  const absl::Status status = overflow.Step(0, 10000);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("parameter of element 7000"));

  Fixture nan(10000);
  nan.m[4097] = std::numeric_limits<float>::quiet_NaN();
  const absl::Status in_range = nan.Step(4096, 4096);
  EXPECT_THAT(std::string(in_range.message()), HasSubstr("element 4097"));
}

TEST(MergeAndStep, BadStateIsSeenEvenWhenParametersAreFine) {
  Fixture adam(4096, {.optimizer = OuterOptimizerKind::kAdam});
  adam.v[5] = std::numeric_limits<float>::infinity();  // m / inf is 0: theta stays finite
  const absl::Status status = adam.Step(0, 4096);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("optimizer state of element 5"));
}

}  // namespace
}  // namespace atl

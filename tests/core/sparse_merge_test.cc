// Contributions that leave values out: against a float64 computation on what they hold, and the same bits
// through every path of the merge.

#include <cmath>
#include <vector>

#include "core/sparse_codec.h"
#include "gtest/gtest.h"
#include "tests/core/merge_fixture.h"

namespace atl {
namespace {

const MergeOptions kPresent = {.sparse_average = SparseAverage::kPresent};

MergeRound SparseRound(const std::vector<CodecKind>& codecs) {
  const FragmentLayout layout = LayoutOf({5000, 300, 2 * 4096 + 7});
  const std::vector<float> common = RandomDelta(layout, 1);
  std::vector<std::vector<float>> deltas;
  std::vector<double> weights;
  for (size_t w = 0; w < 5; ++w) {
    deltas.push_back(RandomDelta(layout, 10 + w, 3e-4f));
    for (size_t k = 0; k < layout.elements; ++k) deltas[w][k] += common[k];
    weights.push_back(1 + static_cast<double>(w * w));
  }
  return MergeRound(layout, deltas, weights, codecs);
}

/// Which values an input holds, by reading its blocks one by one.
std::vector<bool> Held(const MergeInput& input, uint64_t elements) {
  const SparseCodec* sparse = input.codec->sparse();
  std::vector<bool> held(elements, sparse == nullptr);
  HeldValues values;
  for (uint64_t first = 0; sparse != nullptr && first < elements; first += SparseCodec::kBlock) {
    sparse->ReadBlock(input.payload, elements, first, values);
    for (size_t i = 0; i < values.count; ++i) held[first + values.positions[i]] = true;
  }
  return held;
}

void ExpectDividedByThoseThatHold(const MergeRound& round) {
  const uint64_t elements = round.layout.elements;
  const std::vector<std::vector<float>> decoded = round.decoded();
  std::vector<std::vector<bool>> held;
  for (const MergeInput& input : round.inputs) held.push_back(Held(input, elements));
  const std::vector<float> merged = Merged(round, kPresent);
  size_t shared = 0;
  for (uint64_t k = 0; k < elements; ++k) {
    double sum = 0;
    double weight = 0;
    double magnitude = 0;
    int holders = 0;
    for (size_t i = 0; i < held.size(); ++i) {
      if (!held[i][k]) continue;
      sum += double{round.inputs[i].weight} * decoded[i][k];
      weight += double{round.inputs[i].weight};
      magnitude += std::abs(double{decoded[i][k]});
      ++holders;
    }
    shared += holders > 1 ? 1 : 0;
    ASSERT_NEAR(merged[k], holders == 0 ? 0 : sum / weight, 0x1p-21 * magnitude)
        << k << ", held by " << holders;
  }
  EXPECT_GT(shared, elements / 200);
}

TEST(SparseAverage, PresentDividesByThoseThatHoldTheValue) {
  ExpectDividedByThoseThatHold(SparseRound({CodecKind::kTopK64}));
  ExpectDividedByThoseThatHold(SparseRound({CodecKind::kTopK128Bf16, CodecKind::kTopK64}));
  ExpectDividedByThoseThatHold(SparseRound({CodecKind::kTopK128, CodecKind::kTopK64Bf16, CodecKind::kInt8}));
}

TEST(SparseAverage, AllDividesByEverybody) {
  const MergeRound round = SparseRound({CodecKind::kTopK128});
  const std::vector<std::vector<float>> decoded = round.decoded();
  std::vector<float> expected(round.layout.elements);
  for (size_t i = 0; i < decoded.size(); ++i) {
    for (size_t k = 0; k < expected.size(); ++k) expected[k] += round.inputs[i].weight * decoded[i][k];
  }
  EXPECT_EQ(Bits(Merged(round, {})), Bits(expected));
}

TEST(SparseAverage, AHeldZeroCounts) {
  // Two contributions of one block; the second has nothing but zeros, and holds the first 64 of them.
  const FragmentLayout layout = LayoutOf({4096});
  std::vector<float> some(4096);
  some[3] = 1;
  some[4000] = 1;
  const MergeRound round(layout, {some, std::vector<float>(4096)}, {3, 1}, {CodecKind::kTopK64Bf16});
  const std::vector<float> merged = Merged(round, kPresent);
  EXPECT_EQ(merged[3], 0.75f);
  EXPECT_EQ(merged[4000], 1.0f);
}

TEST(SparseAverage, OfDenseContributionsNothingChanges) {
  const MergeRound round = SparseRound({CodecKind::kInt8, CodecKind::kFp32});
  EXPECT_EQ(Bits(Merged(round, kPresent)), Bits(Merged(round, {})));
}

TEST(SparseAverage, HasTheSameBitsOnAnyThreadsAndRanges) {
  const MergeRound round = SparseRound({CodecKind::kTopK64, CodecKind::kTopK128Bf16});
  const std::vector<uint32_t> expected = Bits(Merged(round, kPresent));
  for (const size_t threads : {2, 3}) {
    EXPECT_EQ(Bits(Merged(round, kPresent, threads, 4096 * threads)), expected);
  }
}

TEST(SparseMerge, SegmentsInsideABlockGiveTheSameBits) {
  // The same coefficients all over, but cut so that a block has several segments: another path.
  const MergeRound round = SparseRound({CodecKind::kTopK64, CodecKind::kTopK128});
  MergePlan cut = WeightedMeanPlan(round.inputs, round.layout.elements);
  const std::vector<float> coefficients = cut.segments.front().coefficients;
  cut.segments.clear();
  for (uint64_t end = 256; end <= round.layout.elements; end += 256) {
    cut.segments.push_back({.end = end, .coefficients = coefficients});
  }
  std::vector<float> merged(round.layout.elements);
  MergeRange(cut, 0, merged);
  EXPECT_EQ(Bits(merged), Bits(Merged(round, {})));
}

}  // namespace
}  // namespace atl

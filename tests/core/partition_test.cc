#include "core/partition.h"

#include <algorithm>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using testing::ElementsAre;

std::vector<uint64_t> Take(const SampleOrder& order, uint64_t first, size_t n) {
  std::vector<uint64_t> taken;
  for (size_t i = 0; i < n; ++i) taken.push_back(order.At(first + i));
  return taken;
}

TEST(SampleCount, CountsWindowsThatHaveATargetForEveryToken) {
  EXPECT_EQ(SampleCount(0, 64), 0u);
  EXPECT_EQ(SampleCount(64, 64), 0u);
  EXPECT_EQ(SampleCount(65, 64), 1u);
  EXPECT_EQ(SampleCount(128, 64), 1u);
  EXPECT_EQ(SampleCount(129, 64), 2u);
}

TEST(SampleOrder, FollowsTheGoldenTable) {
  // The table of docs/reference/data_order.md, computed by the script there.
  EXPECT_THAT(Take(SampleOrder(10, 1337), 0, 10), ElementsAre(4, 2, 6, 8, 3, 5, 1, 7, 9, 0));
  EXPECT_THAT(Take(SampleOrder(10, 1337), 10, 5), ElementsAre(1, 4, 0, 3, 6));
  EXPECT_THAT(Take(SampleOrder(1000, 1337), 0, 5), ElementsAre(542, 735, 235, 602, 898));
  EXPECT_THAT(Take(SampleOrder(1000, 1337), 1000, 5), ElementsAre(541, 847, 832, 706, 249));
  EXPECT_THAT(Take(SampleOrder(240000, 42), 0, 3), ElementsAre(180332, 129449, 201766));
  EXPECT_EQ(SampleOrder(1000000007, UINT64_MAX).At(1000000000000), 776794892u);
}

TEST(SampleOrder, EveryPassVisitsEverySampleOnce) {
  for (const uint64_t samples : {1, 2, 3, 4, 5, 16, 17, 64, 65, 1000, 4097}) {
    const SampleOrder order(samples, 7);
    for (const uint64_t pass : {uint64_t{0}, uint64_t{1}, uint64_t{12345}}) {
      std::vector<uint64_t> taken = Take(order, pass * samples, samples);
      std::sort(taken.begin(), taken.end());
      for (uint64_t i = 0; i < samples; ++i) ASSERT_EQ(taken[i], i) << samples;
    }
  }
}

TEST(SampleOrder, PassesAndSeedsDiffer) {
  const SampleOrder order(1000, 1);
  EXPECT_NE(Take(order, 0, 1000), Take(order, 1000, 1000));
  EXPECT_NE(Take(order, 0, 1000), Take(SampleOrder(1000, 2), 0, 1000));
}

TEST(SampleOrder, PartitionsShareNothingAndCoverAll) {
  constexpr uint64_t kSamples = 1003;  // not a multiple of the partitions: they drift through the passes
  const SampleOrder order(kSamples, 9);
  EXPECT_THAT(
      (std::vector{SampleOrder(1000, 1337).SampleAt(2, 4, 0), SampleOrder(1000, 1337).SampleAt(2, 4, 1)}),
      ElementsAre(235, 552));
  std::multiset<uint64_t> taken;
  for (uint32_t partition = 0; partition < 4; ++partition) {
    for (uint64_t k = 0; k < kSamples; ++k) taken.insert(order.SampleAt(partition, 4, k));
  }
  for (uint64_t sample = 0; sample < kSamples; ++sample)
    ASSERT_EQ(taken.count(sample), 4u) << "once in each of 4 passes";
}

TEST(SampleOrder, LooksRandom) {
  // Neighbours in the order are far apart in the text: the mean distance of random pairs is a third of the
  // samples.
  constexpr uint64_t kSamples = 100000;
  const std::vector<uint64_t> taken = Take(SampleOrder(kSamples, 3), 0, kSamples);
  double distance = 0;
  for (size_t i = 1; i < kSamples; ++i)
    distance += static_cast<double>(std::max(taken[i], taken[i - 1]) - std::min(taken[i], taken[i - 1]));
  EXPECT_NEAR(distance / kSamples, kSamples / 3.0, kSamples * 0.01);
}

}  // namespace
}  // namespace atl

#include "core/mixture_order.h"

#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Weights = std::vector<uint32_t>;

std::vector<uint32_t> Whole(const std::vector<std::string>& texts) {
  const auto weights = WholeWeights(texts);
  EXPECT_TRUE(weights.ok()) << weights.status();
  return weights.value_or(Weights());
}

std::string Fault(const std::vector<std::string>& texts) {
  return std::string(WholeWeights(texts).status().message());
}

TEST(WholeWeightsTest, TheRatioIsExactAndSmall) {
  EXPECT_THAT(Whole({"0.7", "0.3"}), ElementsAre(7, 3));
  EXPECT_THAT(Whole({"70", "30.0"}), ElementsAre(7, 3));
  EXPECT_THAT(Whole({"1", "1", "2"}), ElementsAre(1, 1, 2));
  EXPECT_THAT(Whole({"5e-1", ".25", "25e-2"}), ElementsAre(2, 1, 1));
  EXPECT_THAT(Whole({"0.9999", "0.0001"}), ElementsAre(9999, 1));
  EXPECT_THAT(Whole({"1e9", "1000000000"}), ElementsAre(1, 1));
}

TEST(WholeWeightsTest, ARatioOfManyDigitsIsRounded) {
  const Weights weights = Whole({"1234567", "891011"});
  EXPECT_EQ(std::accumulate(weights.begin(), weights.end(), 0u), kMaxMixtureWeights);
  EXPECT_THAT(Whole({"0.333333", "0.333333", "0.333334"}), ElementsAre(21845, 21845, 21846));
  EXPECT_NEAR(weights[0] / 65536.0, 1234567.0 / 2125578, 1 / 65536.0);
}

TEST(WholeWeightsTest, RejectsWhatIsNoShare) {
  for (const char* const text : {"0", "0.0", "-1", "", "x", "1x", "1e", "nan", "inf", "1e99", "1e-40",
                                 "1.2.3", "+1", "1234567890123456"}) {
    EXPECT_THAT(Fault({"1", text}),
                HasSubstr("weight '" + std::string(text) + "': expected a number above 0"))
        << text;
  }
  EXPECT_THAT(Fault({"1000000", "1.5", "3"}), HasSubstr("weight '1.5': its share rounds to 0 of 65536"));
}

TEST(MixtureOrderTest, FollowsTheGoldenTable) {
  // The table of docs/reference/data_order.md, computed by the script there.
  const Weights weights = {7, 3};
  const MixtureOrder order(weights, 1337);
  std::vector<std::pair<uint32_t, uint64_t>> found;
  for (uint64_t g = 0; g < 12; ++g) found.emplace_back(order.At(g).part, order.At(g).position);
  const std::vector<std::pair<uint32_t, uint64_t>> expected = {
      {0, 4}, {0, 2}, {0, 6}, {1, 1}, {0, 3}, {0, 5}, {0, 1}, {1, 0}, {1, 2}, {0, 0}, {0, 8}, {0, 11}};
  EXPECT_EQ(found, expected);
  EXPECT_EQ(MixtureOrder::PartSeed(1337, 0), 0xe0e7fb3d2b996927u);
  EXPECT_EQ(MixtureOrder::PartSeed(0, 1), 0xb6c6178bf94827bbu);
}

TEST(MixtureOrderTest, EachBlockHasEachWeightAndSkipsNothing) {
  for (const Weights& weights :
       {Weights{1}, Weights{1, 1}, Weights{7, 3}, Weights{1, 65000}, Weights{5, 1, 11}}) {
    const MixtureOrder order(weights, 7);
    std::vector<std::set<uint64_t>> read(weights.size());
    for (uint64_t block = 0; block < 3; ++block) {
      for (uint64_t i = 0; i < order.block(); ++i) {
        const MixtureOrder::Place place = order.At(block * order.block() + i);
        ASSERT_LT(place.part, weights.size());
        ASSERT_TRUE(read[place.part].insert(place.position).second);
      }
      for (size_t part = 0; part < weights.size(); ++part) {
        ASSERT_EQ(read[part].size(), (block + 1) * weights[part]);
        ASSERT_EQ(*read[part].rbegin(), (block + 1) * weights[part] - 1) << "the positions have no gap";
      }
    }
  }
}

// A fixed pattern would give a worker of every second position only one of two parts.
TEST(MixtureOrderTest, EveryPartitionHasTheShares) {
  const Weights weights = {1, 1};
  const MixtureOrder order(weights, 3);
  for (const uint64_t partitions : {2, 4, 64}) {
    for (uint64_t partition = 0; partition < partitions; partition += partitions / 2) {
      int first = 0;
      for (uint64_t k = 0; k < 4000; ++k) first += order.At(k * partitions + partition).part == 0 ? 1 : 0;
      EXPECT_NEAR(first, 2000, 160) << partition << " of " << partitions;  // five standard deviations
    }
  }
}

TEST(MixtureOrderTest, BlocksSeedsAndPartsDiffer) {
  const Weights weights = {50, 50};
  const auto parts = [&](uint64_t first, uint64_t seed) {
    std::vector<uint32_t> found;
    for (uint64_t i = 0; i < 100; ++i) found.push_back(MixtureOrder(weights, seed).At(first + i).part);
    return found;
  };
  EXPECT_NE(parts(0, 1), parts(100, 1));
  EXPECT_NE(parts(0, 1), parts(0, 2));
  EXPECT_NE(MixtureOrder::PartSeed(1, 0), MixtureOrder::PartSeed(1, 1));
  EXPECT_NE(MixtureOrder::PartSeed(1, 0), MixtureOrder::PartSeed(2, 0));
}

}  // namespace
}  // namespace atl

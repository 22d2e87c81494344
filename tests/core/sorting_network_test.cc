#include "core/sorting_network.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace atl {
namespace {

void Sort(const std::vector<Exchange>& network, std::vector<int>& values) {
  for (const Exchange& exchange : network) {
    if (values[exchange.high] < values[exchange.low]) {
      std::swap(values[exchange.low], values[exchange.high]);
    }
  }
}

TEST(SortingNetwork, SortsEverySequenceOfZerosAndOnes) {
  // A network that sorts these sorts everything (Knuth, volume 3, theorem Z in section 5.3.4).
  for (uint32_t n = 0; n <= 12; ++n) {
    const std::vector<Exchange> network = SortingNetwork(n, 0, n);
    for (uint32_t bits = 0; bits < (1u << n); ++bits) {
      std::vector<int> values(n);
      for (uint32_t i = 0; i < n; ++i) values[i] = static_cast<int>(bits >> i & 1);
      Sort(network, values);
      ASSERT_TRUE(std::ranges::is_sorted(values)) << n << ' ' << bits;
    }
  }
}

TEST(SortingNetwork, PutsTheMiddleWhereAFullSortWould) {
  std::mt19937 random(3);
  for (const uint32_t n : {3u, 8u, 17u, 33u, 100u, 257u}) {
    for (const uint32_t drop : {1u, n / 5, (n - 1) / 2}) {
      const std::vector<Exchange> network = SortingNetwork(n, drop, n - drop);
      EXPECT_LE(network.size(), SortingNetwork(n, 0, n).size());
      for (int trial = 0; trial < 20; ++trial) {
        std::vector<int> values(n);
        for (int& value : values) value = static_cast<int>(random() % n);
        std::vector<int> sorted = values;
        std::ranges::sort(sorted);
        Sort(network, values);
        for (uint32_t i = drop; i < n - drop; ++i) ASSERT_EQ(values[i], sorted[i]) << n << ' ' << drop;
      }
    }
  }
}

TEST(SortingNetwork, LeavesOutWhatTheMiddleDoesNotNeed) {
  EXPECT_EQ(SortingNetwork(8, 0, 8).size(), 19u);  // as Knuth's table says for 8
  EXPECT_LT(SortingNetwork(9, 4, 5).size(), SortingNetwork(9, 0, 9).size());
}

}  // namespace
}  // namespace atl

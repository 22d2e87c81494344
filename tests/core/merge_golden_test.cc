// tests/golden/core/merges.txt, written by make_merges.py beside it: every merge by an implementation that
// shares nothing with core/.

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/core/merge_fixture.h"
#include "tests/paths.h"

namespace atl {
namespace {

constexpr size_t kWorkers = 5;
constexpr size_t kElements = 512;
constexpr size_t kEvery = 9;  // values that the file holds

const std::map<std::string, MergeOptions> kMerges = {
    {"mean", {}},
    {"guarded_mean", {.norm_guard = true}},
    {"rda", {.method = MergeMethod::kRda}},
    {"trimmed_mean", {.method = MergeMethod::kTrimmedMean}},
    {"median", {.method = MergeMethod::kMedian}},
    {"centered_clip", {.method = MergeMethod::kCenteredClip, .clip_iterations = 3}},
    {"guarded_centered_clip",
     {.method = MergeMethod::kCenteredClip, .clip_radius = 4, .clip_iterations = 6, .norm_guard = true}},
};

/// X of make_merges.py; every value is exact in float32.
std::vector<std::vector<float>> Contributions() {
  std::vector<std::vector<float>> x(kWorkers, std::vector<float>(kElements));
  for (size_t w = 0; w < kWorkers; ++w) {
    for (size_t k = 0; k < kElements; ++k) {
      const double value =
          (static_cast<double>((k * 7919 + w * 104729) % 2001) - 1000) / 1024 + (k % 3 == 0 ? -0.25 : 0.5);
      x[w][k] = static_cast<float>(value * std::exp2(static_cast<double>(w) - 2));
    }
  }
  return x;
}

TEST(MergeGolden, EveryMergeIsWhatPythonSays) {
  const MergeRound round(LayoutOf({256, 256}), Contributions(), {1, 2, 3, 4, 6});
  std::ifstream file(std::string(ATOLL_SOURCE_DIR) + "/tests/golden/core/merges.txt");
  size_t seen = 0;
  for (std::string line; std::getline(file, line); ++seen) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    ASSERT_TRUE(kMerges.contains(name)) << name;
    const std::vector<float> merged = Merged(round, kMerges.at(name));
    size_t k = 0;
    for (double value; words >> value; k += kEvery) {
      ASSERT_LT(k, kElements);
      ASSERT_NEAR(merged[k], value, 2e-6) << name << ", value " << k;  // of values up to 6
    }
    EXPECT_GE(k, kElements) << name << " is cut short";
  }
  EXPECT_EQ(seen, kMerges.size());
}

}  // namespace
}  // namespace atl

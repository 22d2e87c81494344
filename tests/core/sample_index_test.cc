#include "core/sample_index.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using testing::ElementsAre;

std::vector<uint64_t> FirstTokens(const SampleIndex& index) {
  std::vector<uint64_t> first;
  for (uint64_t sample = 0; sample < index.size(); ++sample) first.push_back(index.FirstToken(sample));
  return first;
}

// The files of docs/reference/data_order.md: 10, 4, 5 and 13 tokens with a context of 4 make 2, 0, 1 and 3
// samples.
const std::vector<uint64_t> kFiles = {10, 4, 5, 13};

TEST(SampleIndexTest, ASampleLiesInOneFile) {
  const SampleIndex index(kFiles, 4, SequenceBounds::kWithinFiles);
  EXPECT_THAT(FirstTokens(index), ElementsAre(0, 4, 14, 19, 23, 27));
}

TEST(SampleIndexTest, OneTextHasASampleWhereFilesMeet) {
  const SampleIndex index(kFiles, 4, SequenceBounds::kAcrossFiles);
  EXPECT_THAT(FirstTokens(index), ElementsAre(0, 4, 8, 12, 16, 20, 24));
}

TEST(SampleIndexTest, OneFileIsTheSameEitherWay) {
  for (const uint64_t tokens : {5, 6, 8, 9, 1000}) {
    const std::vector<uint64_t> file = {tokens};
    EXPECT_EQ(FirstTokens(SampleIndex(file, 4, SequenceBounds::kWithinFiles)),
              FirstTokens(SampleIndex(file, 4, SequenceBounds::kAcrossFiles)))
        << tokens;
  }
}

TEST(SampleIndexTest, FilesThatAreTooShortHaveNoSample) {
  const std::vector<uint64_t> files = {4, 3, 0, 4};
  EXPECT_EQ(SampleIndex(files, 4, SequenceBounds::kWithinFiles).size(), 0u);
  EXPECT_EQ(SampleIndex(files, 4, SequenceBounds::kAcrossFiles).size(), 2u);
}

}  // namespace
}  // namespace atl

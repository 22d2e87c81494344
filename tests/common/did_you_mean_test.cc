#include "common/did_you_mean.h"

#include "gtest/gtest.h"

namespace atl {
namespace {

TEST(DidYouMeanTest, FindsTheNearestWord) {
  const std::vector<std::string> names = {"quorum", "minimum", "deadline_s"};
  EXPECT_EQ(DidYouMean("quorun", names), "quorum");
  EXPECT_EQ(DidYouMean("qourum", names), "quorum");
  EXPECT_EQ(DidYouMean("deadline", names), "deadline_s");
  EXPECT_EQ(DidYouMean("workers", names), "");
  EXPECT_EQ(DidYouMean("", names), "");
  EXPECT_EQ(DidYouMean("yes", {"tls", "json"}), "");
  EXPECT_EQ(DidYouMean(std::string(10'000, 'q'), names), "");
}

}  // namespace
}  // namespace atl

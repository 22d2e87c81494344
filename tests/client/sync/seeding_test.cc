// Seeds that no run can begin with.
#include "client/sync/seeding.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/sync/harness.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

TEST(SeedingTest, AModelThatIsNotFiniteIsNotSent) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    Harness h;
    h.coordinator.grant_seed = true;
    OuterSync& sync = h.Start();
    const JoinedRun& joined = h.session.info();
    const auto layout = LayOutFragments(h.replica.manifest(), joined.fragments, joined.run.sync);
    ASSERT_TRUE(layout.ok()) << layout.status();
    std::vector<float> values(layout->front().elements, 1.0F);
    values[layout->front().slots[1].offset + 3] = bad;
    ASSERT_TRUE(h.replica.WriteFragment(layout->front(), values).ok());
    const auto end = sync.Run();
    EXPECT_TRUE(absl::IsInvalidArgument(end.status())) << end.status();
    EXPECT_THAT(std::string(end.status().message()), HasSubstr("value 3 of tensor 'bias' is not finite"));
    EXPECT_EQ(h.coordinator.Calls("SeedParameters"), 0u);
  }
}

TEST(SeedingTest, ASeedThatIsRejectedAsNotFiniteIsNotSentAgain) {
  Harness h;
  h.coordinator.grant_seed = true;
  h.coordinator.Fail("SeedParameters", {.status = WithRejection(absl::InvalidArgumentError("value 7 is nan"),
                                                                RejectionReason::kNotFinite)});
  const auto end = h.Start().Run();
  EXPECT_EQ(RejectionReasonOf(end.status()), RejectionReason::kNotFinite) << end.status();
  EXPECT_EQ(h.coordinator.Calls("SeedParameters"), 1u);
}

}  // namespace
}  // namespace atl

#include "client/setup/identity_claim.h"

#include "gtest/gtest.h"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

class Counting final : public WorkerObserver {
 public:
  void OnJoined(const JoinedRun&, bool) override { ++joins; }
  int joins = 0;
};

TEST(IdentityClaimTest, TheFirstJoinBindsTheDirectoryToItsName) {
  const TestDir dir;
  const auto state = StateDirectory::Open(dir.File("state"));
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_TRUE(state->LoadOrCreate("a").ok());
  Counting next;
  IdentityClaim claim(&*state, &next, Logger());
  ASSERT_TRUE(state->LoadOrCreate("b").ok()) << "nobody has accepted 'a'";
  claim.OnJoined(JoinedRun(), false);
  EXPECT_EQ(state->LoadOrCreate("a").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(state->LoadOrCreate("b").ok());
  EXPECT_EQ(next.joins, 1);
}

TEST(IdentityClaimTest, WithoutAStateDirectoryItHandsOn) {
  Counting next;
  IdentityClaim(nullptr, &next, Logger()).OnJoined(JoinedRun(), false);
  EXPECT_EQ(next.joins, 1);
}

}  // namespace
}  // namespace atl

#include "client/sync/load_published.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/sync/fake_coordinator.h"
#include "tests/client/sync/fake_replica.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

/// A run of two fragments whose parameters are all 1.
class LoadPublishedTest : public ::testing::Test {
 protected:
  LoadPublishedTest() { coordinator_.SeedWith(1.0F); }

  absl::Status Load() {
    JoinCall join;
    join.worker = "observer-1";
    join.role = WorkerRole::kObserver;
    return LoadPublished(coordinator_, coordinator_.Join(join).value(), replica_).status();
  }
  /// Every parameter is one more, from the next pull on.
  void PublishBeforeTheNextPull() {
    coordinator_.Fail("Pull", {.before = [&] { coordinator_.PublishWithout(1.0F); }});
  }

  FakeCoordinator coordinator_{2};
  FakeReplica replica_{5.0F};
};

TEST_F(LoadPublishedTest, FragmentsOfABlockingRunAreOfOneVersion) {
  coordinator_.Fail("Pull", {});
  PublishBeforeTheNextPull();
  const absl::Status loaded = Load();
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(coordinator_.Calls("Pull"), 3u);
  EXPECT_EQ(replica_.tensor(0)[0], 2.0F);
  EXPECT_EQ(replica_.tensor(1)[0], 2.0F);
}

TEST_F(LoadPublishedTest, FragmentsOfAnOverlappedRunHaveVersionsOfTheirOwn) {
  coordinator_.run.sync.mode = SyncMode::kOverlapped;
  coordinator_.Fail("Pull", {});
  PublishBeforeTheNextPull();
  const absl::Status loaded = Load();
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(coordinator_.Calls("Pull"), 2u);
}

TEST_F(LoadPublishedTest, FragmentsThatOvertakeEachOtherAreUnavailable) {
  coordinator_.finish_at = 100;
  for (int i = 0; i < 20; ++i) PublishBeforeTheNextPull();
  const absl::Status mixed = Load();
  EXPECT_TRUE(absl::IsUnavailable(mixed)) << mixed;
  EXPECT_THAT(std::string(mixed.message()), HasSubstr("even after 5 more pulls"));
  EXPECT_EQ(coordinator_.Calls("Pull"), 2u + 5);
}

}  // namespace
}  // namespace atl

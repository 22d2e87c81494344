#include "server/launch/wanted_workers.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Numbers = std::set<uint32_t>;

TEST(WantedWorkers, TheLowestNumbersThatAreNotDrained) {
  EXPECT_THAT(ChooseNumbers({}, {}, {}, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(ChooseNumbers({0, 1}, {}, {}, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(ChooseNumbers({0}, {1}, {}, 2), ElementsAre(0, 2)) << "a drained one is left alone";
  EXPECT_THAT(ChooseNumbers({0, 2}, {}, {}, 3), ElementsAre(0, 1, 2));
}

TEST(WantedWorkers, NoChangeWhenAsManyAreWanted) {
  EXPECT_THAT(ChooseNumbers({0, 2}, {1}, {0, 2}, 2), ElementsAre(0, 2));
}

TEST(WantedWorkers, ThoseThatAreNoMembersGoFirstThenTheHighest) {
  EXPECT_THAT(ChooseNumbers({0, 1, 2, 3}, {}, {}, 2), ElementsAre(0, 1));
  EXPECT_THAT(ChooseNumbers({0, 1, 2, 3}, {}, {1}, 2), ElementsAre(0, 2));
  EXPECT_THAT(ChooseNumbers({0, 1, 2, 3}, {}, {0, 1}, 3), ElementsAre(0, 2, 3));
  EXPECT_THAT(ChooseNumbers({0, 1}, {}, {7}, 1), ElementsAre(0)) << "of those that are wanted only";
  EXPECT_THAT(ChooseNumbers({0, 1, 2}, {}, {0, 1, 2}, 0), IsEmpty());
}

}  // namespace
}  // namespace atl

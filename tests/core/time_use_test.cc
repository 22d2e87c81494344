#include "core/time_use.h"

#include <set>

#include "gtest/gtest.h"

namespace atl {
namespace {

TEST(TimeUseTest, EveryUseHasANameAndIsShownOnce) {
  std::set<std::string_view> names;
  for (size_t i = 1; i < kTimeUses; ++i) names.insert(TimeUseName(static_cast<TimeUse>(i)));
  EXPECT_EQ(names.size(), kTimeUses - 1);
  std::set<TimeUse> shown(TrainingUses().begin(), TrainingUses().end());
  EXPECT_EQ(shown.size(), TrainingUses().size());
  shown.insert(ExchangeUses().begin(), ExchangeUses().end());
  EXPECT_EQ(shown.size(), kTimeUses - 1);
  EXPECT_EQ(TimeUseName(static_cast<TimeUse>(200)), "unknown");
}

TEST(TimeUseTest, UtilisationIsComputeOverEverythingButPauses) {
  TimeSpent spent;
  EXPECT_EQ(UtilisationOf(spent), 0);
  spent[TimeUse::kCompute] = 60;
  spent[TimeUse::kOverdue] = 20;
  spent[TimeUse::kEncode] = 5;
  spent[TimeUse::kOther] = 15;
  spent[TimeUse::kPause] = 1000;
  EXPECT_DOUBLE_EQ(UtilisationOf(spent), 0.6);
}

}  // namespace
}  // namespace atl

#include "common/fault_point.h"

#include <cstdlib>

#include <gtest/gtest.h>
#include <signal.h>

namespace atl {
namespace {

TEST(FaultPoint, OffIsNothing) {
  ASSERT_TRUE(ArmFaultPoint("").ok());
  for (int i = 0; i < 1000; ++i) FaultPoint("anything");
}

TEST(FaultPoint, KillsAtTheNamedPassage) {
  const auto passes = [](int before, int others) {
    ASSERT_TRUE(ArmFaultPoint("here:3").ok());
    for (int i = 0; i < others; ++i) FaultPoint("there");
    for (int i = 0; i < before; ++i) FaultPoint("here");
    std::exit(7);
  };
  EXPECT_EXIT(passes(2, 10), testing::ExitedWithCode(7), "");
  EXPECT_EXIT(passes(3, 0), testing::KilledBySignal(SIGKILL), "");
}

TEST(FaultPoint, WhatCannotBeReadIsRejected) {
  for (const char* spec : {"here", "here:", ":3", "here:0", "here:-1", "here:x"}) {
    EXPECT_EQ(ArmFaultPoint(spec).code(), absl::StatusCode::kInvalidArgument) << spec;
  }
  ASSERT_TRUE(ArmFaultPoint("").ok());
}

}  // namespace
}  // namespace atl

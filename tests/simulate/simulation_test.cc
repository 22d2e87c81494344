// Whole simulations (simulate/simulation.h): equal seeds are equal runs, and seeds that found a defect.

#include "simulate/simulation.h"

#include "gtest/gtest.h"

namespace atl {
namespace {

SimulationResult RunSeed(uint64_t seed, SimulatedMode mode, double seconds) {
  return Simulate({.seed = seed, .mode = mode, .workers = 8, .duration = Seconds(seconds)});
}

class SimulationTest : public ::testing::TestWithParam<SimulatedMode> {};

TEST_P(SimulationTest, ASeedIsARun) {
  const SimulationResult one = RunSeed(11, GetParam(), 900);
  const SimulationResult again = RunSeed(11, GetParam(), 900);
  const SimulationResult another = RunSeed(12, GetParam(), 900);
  EXPECT_TRUE(one.status.ok()) << one.status;
  EXPECT_GT(one.versions, 20U);
  EXPECT_GT(one.counted, 60U);
  EXPECT_GT(one.events.at("worker_kills") + one.events.at("partitions"), 2U);
  EXPECT_EQ(one.fingerprint, again.fingerprint);
  EXPECT_EQ(one.switches, again.switches);
  EXPECT_EQ(one.events, again.events);
  EXPECT_NE(one.fingerprint, another.fingerprint);
}

INSTANTIATE_TEST_SUITE_P(Modes, SimulationTest,
                         ::testing::Values(SimulatedMode::kBlocking, SimulatedMode::kOverlapped,
                                           SimulatedMode::kAsync));

// An exchange that was under way while another thread of the same worker joined again was refused as
// superseded, and the worker ended: it took itself for another process.
TEST(SimulationTest, AWorkerIsNotSupersededByItself) {
  for (const uint64_t seed : {uint64_t{1}, uint64_t{16}, uint64_t{22}}) {
    const SimulationResult result = RunSeed(seed, SimulatedMode::kOverlapped, 3600);
    EXPECT_TRUE(result.status.ok()) << seed << ": " << result.status;
  }
}

}  // namespace
}  // namespace atl

#include "core/memory_bounds.h"

#include <gtest/gtest.h>

namespace atl {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

RunOptions Small() {
  RunOptions run;
  run.workers = 2;
  run.model = {.layers = 4, .heads = 4, .width = 128, .context = 128, .vocabulary = 256};
  return run;
}

TEST(MemoryBounds, StrangersGetARestThatFits) {
  const auto run = PlanCoordinatorMemory(Small());
  ASSERT_TRUE(run.ok()) << run.status();
  for (const uint64_t limit : {384 * kMiB, 512 * kMiB, 1024 * kMiB, 8192 * kMiB}) {
    const MemoryBounds bounds = BoundsWithin(limit, *run);
    EXPECT_TRUE(bounds.fits()) << limit;
    // Bytes that take up to a quarter more than themselves, connections and streams at their measured sizes.
    const uint64_t bytes = (bounds.silent_bytes + bounds.held_bytes - 2 * run->streams) * 5 / 4;
    const uint64_t all = bytes + bounds.connections * (48 << 10) + bounds.open_streams * (20 << 10);
    EXPECT_LE(all, bounds.strangers) << limit;
    EXPECT_LE(bounds.run + all, limit);
    // gRPC's own bound, at which it ends connections at random, is behind all of them.
    EXPECT_GE(bounds.buffers, run->streams + all);
  }
}

TEST(MemoryBounds, MoreMemoryNeverTightensABound) {
  const auto run = PlanCoordinatorMemory(Small());
  ASSERT_TRUE(run.ok());
  MemoryBounds before = BoundsWithin(64 * kMiB, *run);
  for (uint64_t limit = 128 * kMiB; limit < 65536 * kMiB; limit *= 2) {
    const MemoryBounds bounds = BoundsWithin(limit, *run);
    EXPECT_GE(bounds.silent_bytes, before.silent_bytes);
    EXPECT_GE(bounds.connections, before.connections);
    EXPECT_GE(bounds.open_streams, before.open_streams);
    before = bounds;
  }
  EXPECT_LE(before.strangers, 2048 * kMiB) << "more buys nothing";
}

TEST(MemoryBounds, ALimitBelowTheRunIsSaid) {
  const auto run = PlanCoordinatorMemory(Small());
  ASSERT_TRUE(run.ok());
  EXPECT_FALSE(BoundsWithin(run->peak() / 2, *run).fits());
  EXPECT_FALSE(BoundsWithin(run->peak(), *run).fits());
}

TEST(MemoryBounds, TheRecommendedLimitHasRoomForBoth) {
  for (const uint32_t workers : {1, 16, 200}) {
    RunOptions options = Small();
    options.workers = workers;
    const auto run = PlanCoordinatorMemory(options);
    ASSERT_TRUE(run.ok());
    const uint64_t limit = RecommendedMemoryLimit(*run);
    EXPECT_EQ(limit % (256 * kMiB), 0u);
    const MemoryBounds bounds = BoundsWithin(limit, *run);
    EXPECT_TRUE(bounds.fits());
    EXPECT_GE(bounds.strangers, 192 * kMiB);
    // Every worker may hold back a message of its largest size, and the other half of a connection's windows.
    EXPECT_GE(bounds.silent_bytes, run->streams);
  }
}

TEST(MemoryBounds, TheRecommendedLimitOutlastsAnOverflow) {
  RunOptions options = Small();
  options.model = {.layers = 12, .heads = 12, .width = 768, .context = 1024, .vocabulary = 50304};
  const auto run = PlanCoordinatorMemory(options);
  ASSERT_TRUE(run.ok());
  EXPECT_GE(RecommendedMemoryLimit(*run), run->worst());
}

}  // namespace
}  // namespace atl

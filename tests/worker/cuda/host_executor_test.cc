#include "worker/cuda/host_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace atl::device {
namespace {

using testing::HasSubstr;
using Words = SharedArray<uint32_t, 64>;

struct WordArguments {
  GlobalSpan<uint32_t> words;
  uint32_t mode = 0;
};

class HostExecutorTest : public testing::Test {
 protected:
  template <typename Kernel>
  std::string Run(uint32_t blocks, uint32_t threads, uint32_t mode = 0) {
    return std::string(executor_.Launch<Kernel>(blocks, threads, {.words = words_, .mode = mode}).message());
  }

  std::vector<uint32_t> memory_ = std::vector<uint32_t>(64, 1);
  HostExecutor executor_{{.seed = 3, .most_accesses = 100000}};
  GlobalSpan<uint32_t> words_ = executor_.Global("words", std::span(memory_));
};

/// Sums of the warps' values, through shared memory.
struct SumOfBlock {
  static constexpr const char* kName = "sum_of_block";
  using Arguments = WordArguments;
  static void Run(const Arguments& in) {
    ATOLL_SHARED(Words, partial);
    uint32_t sum = in.words.Load(ThreadIndex());
    for (uint32_t mask = 1; mask < kWarp; mask *= 2) sum += ShuffleXor(sum, mask);
    if (ThreadIndex() % kWarp == 0) partial.Store(ThreadIndex() / kWarp, sum);
    Barrier();
    uint32_t total = 0;
    for (uint32_t warp = 0; warp < BlockThreads() / kWarp; ++warp) total += partial.Load(warp);
    Barrier();
    if (ThreadIndex() == 0) in.words.Store(0, total);
  }
};

TEST_F(HostExecutorTest, RunsAKernelThatIsRight) {
  EXPECT_EQ(Run<SumOfBlock>(1, 64), "");
  EXPECT_EQ(memory_[0], 64);
  EXPECT_EQ(executor_.traffic()[0].read, 64 * 4);
  EXPECT_EQ(executor_.traffic()[0].written, 4);
  EXPECT_EQ(executor_.shared_bytes(), 64 * 4);
}

TEST_F(HostExecutorTest, RejectsBlocksOfPartsOfWarps) {
  EXPECT_THAT(Run<SumOfBlock>(1, 33),
              HasSubstr("a block of 33 threads; it must have a multiple of 32, at most 1024"));
}

TEST_F(HostExecutorTest, ReportsBlocksThatWriteTheSameWord) {
  EXPECT_THAT(Run<SumOfBlock>(2, 64),
              testing::ContainsRegex(
                  "words.0. .4 bytes. at .*of block [01] (read|wrote) it, and nothing orders blocks"));
}

struct Faulty {
  static constexpr const char* kName = "faulty";
  using Arguments = WordArguments;
  static void Run(const Arguments& in) {
    ATOLL_SHARED(Words, words);
    const uint32_t thread = ThreadIndex();
    if (in.mode == 0 && thread == 5) in.words.LoadAs<TwoWords>(3);
    if (in.mode == 1 && thread == 9) in.words.Load(64);
    if (in.mode == 2 && thread == 1) words.Load(2);
    if (in.mode == 3 && thread < 7) Ballot(true);
    if (in.mode == 4) {
      while (in.words.Load(0) == 1) {
      }
    }
    if (in.mode == 5 && thread == 31) ShuffleXor(1, 1);
    if (in.mode == 5 && thread != 31) ShuffleXor(1, 2);
    if (in.mode == 6 && thread < 32) Barrier();
    if (in.mode == 7) in.words.AtomicMin(0, thread);
    if (in.mode == 8) words.Store(0, 1);
    if (in.mode == 9 && thread == 0) words.Store(0, 1);
    if (in.mode == 9 && thread == 1) words.AtomicAdd(0, 1);
  }
};

TEST_F(HostExecutorTest, ReportsEachFault) {
  EXPECT_THAT(Run<Faulty>(1, 64, 0), HasSubstr("thread 5 reads words[3] (8 bytes) at"));
  EXPECT_THAT(Run<Faulty>(1, 64, 0), HasSubstr("unaligned, the address must be a multiple of 8"));
  EXPECT_THAT(Run<Faulty>(1, 64, 1),
              HasSubstr("thread 9 reads words[64] (4 bytes) at host_executor_test.cc"));
  EXPECT_THAT(Run<Faulty>(1, 64, 1), HasSubstr("out of bounds, it has 64 elements"));
  EXPECT_THAT(Run<Faulty>(1, 64, 2), HasSubstr("nobody has written it"));
  EXPECT_THAT(Run<Faulty>(1, 32, 3), HasSubstr("no thread can go on: 7 of 32 threads wait for its warp at"));
  EXPECT_THAT(Run<Faulty>(1, 64, 4), HasSubstr("the kernel has not ended after 100000 accesses"));
  EXPECT_THAT(Run<Faulty>(1, 32, 5), HasSubstr("the warp's threads diverge"));
  EXPECT_THAT(Run<Faulty>(1, 64, 6), HasSubstr("32 of 64 threads wait at the barrier"));
  EXPECT_THAT(Run<Faulty>(1, 64, 8), HasSubstr("wrote it, with no barrier between"));
  EXPECT_THAT(Run<Faulty>(1, 64, 9), HasSubstr("with no barrier between"));
}

TEST_F(HostExecutorTest, GoesOnAfterAFault) {
  EXPECT_NE(Run<Faulty>(1, 64, 4), "");
  EXPECT_EQ(Run<Faulty>(2, 64, 7), "");
  EXPECT_EQ(memory_[0], 0);
  memory_[0] = 1;
  EXPECT_EQ(Run<SumOfBlock>(1, 64), "");
}

TEST_F(HostExecutorTest, CountsFindingsBeyondTheFirst) {
  EXPECT_THAT(Run<Faulty>(1, 64, 8), HasSubstr("and 55 findings more"));
}

}  // namespace
}  // namespace atl::device

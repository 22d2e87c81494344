#include "worker/data/tokenize/ordered_pipeline.h"

#include <gtest/gtest.h>

#include <atomic>

namespace atl {
namespace {

using Pipeline = OrderedPipeline<int, int>;

std::vector<Pipeline::Work> Workers(size_t count) {
  return std::vector<Pipeline::Work>(count, [](int item) {
    // The first of each ten takes longer than the others.
    volatile int spin = 0;
    for (int i = 0; i < (item % 10 == 0 ? 20'000 : 10); ++i) spin = spin + 1;
    return 2 * item;
  });
}

TEST(OrderedPipelineTest, ResultsAreInTheOrderOfTheItems) {
  for (const size_t workers : {size_t{1}, size_t{2}, size_t{7}}) {
    int next = 0;
    Pipeline pipeline(
        [&]() -> std::optional<int> { return next < 1000 ? std::optional(next++) : std::nullopt; },
        Workers(workers));
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(pipeline.Next(), 2 * i);
    EXPECT_EQ(pipeline.Next(), std::nullopt);
    EXPECT_EQ(pipeline.Next(), std::nullopt);
  }
}

TEST(OrderedPipelineTest, ReadsABoundedNumberAhead) {
  std::atomic<int> next{0};
  Pipeline pipeline([&] { return std::optional(next++); }, Workers(3));
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(pipeline.Next(), 2 * i);
    EXPECT_LE(next.load(), i + 1 + 2 * 3 + 2 + 1);
  }
}

TEST(OrderedPipelineTest, EndsWithoutItsResultsBeingTaken) {
  int next = 0;
  {
    const Pipeline untouched([&] { return std::optional(next++); }, Workers(2));
  }
  {
    const Pipeline empty([] { return std::optional<int>(); }, Workers(2));
  }
}

}  // namespace
}  // namespace atl

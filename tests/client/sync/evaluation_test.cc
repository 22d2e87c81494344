// What a worker says of the versions that it evaluates.
#include "client/sync/evaluation.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/client/sync/harness.h"

namespace atl {
namespace {

TEST(EvaluationTest, OnlyALanguageModelHasAPerplexity) {
  for (const bool external : {false, true}) {
    Harness h;
    h.coordinator.SeedWith(1.0F);
    h.coordinator.evaluate_all = true;
    if (external) h.coordinator.run.model = ModelOptions(ExternalOptions());
    ASSERT_TRUE(h.Start().Run().ok());
    const std::string log = h.log.str();
    ASSERT_NE(log.find("evaluated the published parameters"), std::string::npos) << log;
    EXPECT_EQ(log.find("perplexity") == std::string::npos, external) << log;
  }
}

}  // namespace
}  // namespace atl

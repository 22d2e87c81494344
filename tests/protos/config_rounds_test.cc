// What merge, outer optimizer and round mode demand of each other (protos/config/check_rounds.h).

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protos/config/run_config.h"
#include "tests/protos/sample_config.h"

namespace atl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// The sample with this many workers and more at its end; what the parser says of it, without the place.
std::string Complaint(int workers, const std::string& more) {
  std::string yaml = SampleAnd(more);
  yaml.replace(yaml.find("workers: 4"), 10, "workers: " + std::to_string(workers));
  return ComplaintAbout(yaml);
}

const std::string kAsync = "round: {mode: async, staleness_limit: 7}\n";

TEST(ConfigRoundsTest, RobustMergesNeedThreeWorkers) {
  for (const char* method : {"trimmed_mean, trim: 0.4", "median", "centered_clip"}) {
    const std::string merge = std::string("merge: {method: ") + method + "}\n";
    EXPECT_EQ(Complaint(3, merge), "");
    const std::string text(method);
    const std::string name = text.substr(0, text.find(','));
    EXPECT_EQ(Complaint(2, merge),
              "merge.method: '" + name +
                  "' needs at least 3 workers, so that a majority is right when one is wrong; "
                  "run.workers is 2");
  }
  EXPECT_EQ(Complaint(1, "merge: {method: rda, norm_guard: true}\n"), "");
}

TEST(ConfigRoundsTest, RobustMergesNeedRoundsWithMoreThanOne) {
  EXPECT_EQ(
      Complaint(4, "merge: {method: median}\nouter: {optimizer: sgd}\n" + kAsync),
      "merge.method: 'median' compares the contributions of a round; with round.mode async each round has "
      "only one: use mean or rda");
}

TEST(ConfigRoundsTest, LateContributionsAreFoldedByDefaultWhereEverybodyIsWaitedFor) {
  const auto limit = [](const std::string& more) {
    const auto file = ReadRunConfig(SampleAnd(more), "test");
    EXPECT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->staleness_open, more.find("staleness") == std::string::npos) << more;
    return ToRunOptions(file->config)->round.staleness_limit;
  };
  EXPECT_EQ(limit("round: {deadline_s: 10}\n"), 1u);
  EXPECT_EQ(limit("merge: {method: rda}\n"), 1u);
  EXPECT_EQ(limit("round: {staleness_limit: 0}\n"), 0u);
  EXPECT_EQ(limit("round: {staleness_limit: 3}\n"), 3u);
  EXPECT_EQ(limit("round: {quorum: 0.75}\n"), 0u) << "a straggler is late every round";
  EXPECT_EQ(limit("merge: {method: median}\n"), 0u);
  EXPECT_EQ(limit("merge: {method: centered_clip}\n"), 0u) << "each has one voice";
  EXPECT_EQ(limit("offenders: {ban_after: 3}\nmerge: {norm_guard: true}\n"), 0u);
  EXPECT_EQ(limit("privacy: {clip_norm: 1}\n"), 0u);
}

TEST(ConfigRoundsTest, ARecordedConfigurationWithoutALimitRejectsThem) {
  v1::RunConfig recorded = *ParseRunConfig(SampleAnd(""), "test");
  recorded.mutable_round()->clear_staleness_limit();
  EXPECT_EQ(ToRunOptions(recorded)->round.staleness_limit, 0u);
}

TEST(ConfigRoundsTest, ATrimThatLeavesNobodyOutIsRejected) {
  EXPECT_EQ(Complaint(4, "merge: {method: trimmed_mean}\n"),
            "merge.trim: 0.2 of 4 workers drops no contribution; allowed: at least 0.25");
  EXPECT_EQ(Complaint(4, "merge: {method: trimmed_mean, trim: 0.25}\n"), "");
  EXPECT_EQ(Complaint(3, "merge: {method: trimmed_mean, trim: 0.33}\n"),
            "merge.trim: 0.33 of 3 workers drops no contribution; allowed: at least 0.34");
  EXPECT_EQ(Complaint(3, "merge: {method: trimmed_mean, trim: 0.34}\n"), "");
  EXPECT_EQ(Complaint(10, "merge: {method: trimmed_mean, trim: 0.1}\n"), "");
  EXPECT_EQ(Complaint(4, "merge: {trim: 0}\n"), "") << "only trimmed_mean reads it";
}

TEST(ConfigRoundsTest, LateContributionsNeedAMergeThatKnowsWeights) {
  EXPECT_EQ(Complaint(4, "merge: {method: median}\nround: {staleness_limit: 2}\n"),
            "round.staleness_limit: late contributions need a lower weight, but merge.method 'median' has no "
            "weights; 0 rejects them");
  EXPECT_EQ(Complaint(4, "merge: {method: centered_clip}\nround: {staleness_limit: 2}\n"), "");
}

TEST(ConfigRoundsTest, SpreadIsAtMostOneOverTheDelay) {
  const auto outer = [](const std::string& more) {
    return "outer: {optimizer: delayed_nesterov" + more + "}\n" + kAsync;
  };
  EXPECT_EQ(Complaint(4, outer("")), "");
  EXPECT_EQ(Complaint(4, outer(", spread: 0.25")), "");
  EXPECT_EQ(Complaint(4, outer(", spread: 0.1, delay: 10")), "");
  EXPECT_EQ(Complaint(4, outer(", spread: 0.3")),
            "outer.spread: 0.3 is above 1 / 4, one over the versions between two updates of the momentum "
            "(outer.delay): more than all of it would be applied");
  EXPECT_EQ(Complaint(4, "outer: {spread: 0.9}\n"), "") << "only delayed_nesterov reads it";
}

TEST(ConfigRoundsTest, DelayedNesterovIsForFreeRounds) {
  EXPECT_EQ(
      Complaint(4, "outer: {optimizer: delayed_nesterov}\n"),
      "outer.optimizer: 'delayed_nesterov' takes 1 / 4 of each version's step (outer.delay), which is for "
      "round.mode async; with barrier use nesterov");
  EXPECT_EQ(Complaint(4, "outer: {optimizer: delayed_nesterov, delay: 1}\n"), "") << "that is nesterov";
}

TEST(ConfigRoundsTest, FreeRoundsTakeNoMomentumAtEveryArrival) {
  EXPECT_EQ(Complaint(4, "outer: {optimizer: sgd}\n" + kAsync), "");
  for (const char* optimizer : {"nesterov", "adam"}) {
    EXPECT_EQ(Complaint(4, std::string("outer: {optimizer: ") + optimizer + "}\n" + kAsync),
              std::string("outer.optimizer: '") + optimizer +
                  "' diverges when round.mode is async, because every contribution takes a full step with "
                  "momentum; "
                  "use delayed_nesterov or sgd");
  }
}

TEST(ConfigRoundsTest, FreeRoundsWaitForNobodyAndTakeWhatComesLate) {
  const std::string sgd = "outer: {optimizer: sgd}\n";
  EXPECT_EQ(
      Complaint(4, sgd + "round: {mode: async, staleness_limit: 3, minimum: 2}\n"),
      "round.minimum: 2 contributions per round are impossible when round.mode is async: each one makes a "
      "version; allowed: 1");
  EXPECT_EQ(
      Complaint(4, sgd + "round: {mode: async, staleness_limit: 2}\n"),
      "round.staleness_limit: 2 would reject most contributions when round.mode is async: with 4 equally "
      "fast workers (run.workers), each contribution is 3 versions old when it arrives; allowed: at "
      "least that");
  EXPECT_EQ(Complaint(4, sgd + "round: {mode: async, staleness_limit: 3}\n"), "");
  EXPECT_EQ(Complaint(1, sgd + "round: {mode: async}\n"), "");
}

TEST(ConfigRoundsTest, TheOldWordForAsyncStillWorksWithAWarning) {
  const std::string rest = ", staleness_limit: 7}\nouter: {optimizer: sgd}\n";
  const auto old = ReadRunConfig(SampleAnd("round: {mode: free" + rest), "run.yaml");
  const auto now = ReadRunConfig(SampleAnd("round: {mode: async" + rest), "run.yaml");
  ASSERT_TRUE(old.ok()) << old.status();
  ASSERT_TRUE(now.ok()) << now.status();
  EXPECT_EQ(old->config.SerializeAsString(), now->config.SerializeAsString());
  EXPECT_THAT(FormatRunConfigYaml(old->config), HasSubstr("mode: async\n"));
  EXPECT_THAT(now->warnings, IsEmpty());
  ASSERT_EQ(old->warnings.size(), 1U);
  EXPECT_THAT(old->warnings.front(), StartsWith("run.yaml:"));
  EXPECT_THAT(old->warnings.front(), HasSubstr("round.mode: 'free' is now called 'async'; use the new name"));
  EXPECT_THAT(Complaint(4, "round: {mode: asnyc}\n"),
              HasSubstr("did you mean 'async'? allowed: one of barrier, async"));
}

}  // namespace
}  // namespace atl

#include "server/run/run_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/codec.h"
#include "server/all_evaluations.h"
#include "tests/server/test_run.h"

namespace atl {
namespace {

FragmentLayout Layout(uint32_t id = 0) {
  return {.id = FragmentId(id),
          .slots = {{.tensor = 0, .offset = 0, .elements = 800}},
          .elements = kSmallElements};
}

RoundRecord Record(uint64_t version, uint64_t tokens_each, double closed_s, uint32_t fragment = 0) {
  RoundRecord record;
  record.fragment = FragmentId(fragment);
  record.version = Version(version);
  for (const double loss : {2.0, 4.0}) {
    Contribution contribution;
    contribution.tokens = tokens_each;
    contribution.steps = 2;
    contribution.payload_bytes = 4096;
    contribution.mean_loss = loss;
    record.contributions.push_back(contribution);
  }
  record.weights = {0.25F, 0.75F};
  record.committed_tokens = version * 2 * tokens_each;
  record.closed_unix_ns = static_cast<int64_t>(closed_s * 1e9);
  return record;
}

RunConfigs Configs(const RunOptions& run) {
  return RunConfigs(
      std::make_shared<const ConfigSnapshot>(ConfigSnapshot{.version = 1, .bytes = {}, .run = run}));
}

TEST(RunStatistics, AccountsARound) {
  const RunConfigs statistics_configs = Configs(SmallRun().run);
  RunStatistics statistics(&statistics_configs);
  const RoundSummaryView summary = statistics.Close(Record(1, 64, 100), Layout(), 3.5, 0.5);
  EXPECT_EQ(summary.train_loss, 3.5) << "weighted as merged";
  EXPECT_EQ(summary.tokens, 128);
  EXPECT_EQ(summary.payload_bytes, 8192);
  EXPECT_EQ(statistics.committed_tokens(), 128);
  EXPECT_EQ(statistics.Pace(), 32);
  EXPECT_EQ(statistics.EtaSeconds(statistics.Pace()), (12800 - 128) / 32.0);
  EXPECT_EQ(statistics.PositionSteps(), 2) << "128 tokens: two steps of two workers";
}

TEST(RunStatistics, ThePaceFallsWhileARoundTakesLongerThanTheLastOnes) {
  const RunConfigs statistics_configs = Configs(SmallRun().run);
  RunStatistics statistics(&statistics_configs);
  EXPECT_EQ(statistics.Pace(10), 0) << "no round was closed";
  statistics.Close(Record(1, 64, 100), Layout(), 3.5, 0.5);
  statistics.Close(Record(2, 64, 104), Layout(), 3.5, 0.5);
  EXPECT_EQ(statistics.Pace(4), 32) << "as long as the last ones";
  EXPECT_EQ(statistics.Pace(12), 16);
  EXPECT_EQ(statistics.Pace(252), 1);
}

TEST(RunStatistics, TimeWithoutWorkersIsNoPartOfThePace) {
  const RunConfigs statistics_configs = Configs(SmallRun().run);
  RunStatistics statistics(&statistics_configs);
  const RoundSummaryView summary = statistics.Close(Record(1, 64, 100), Layout(), 603.5, 0.5, 600);
  EXPECT_EQ(summary.open_seconds, 603.5);
  EXPECT_EQ(statistics.Pace(), 32);
}

TEST(RunStatistics, ARoundWhoseTimeSaysNothingIsNoPartOfThePace) {
  const RunConfigs statistics_configs = Configs(SmallRun().run);
  RunStatistics statistics(&statistics_configs);
  statistics.Close(Record(1, 64, 100), Layout(), 0.1, 0.1, std::nullopt);
  EXPECT_EQ(statistics.Pace(), 0);
  EXPECT_EQ(statistics.committed_tokens(), 128);
  statistics.Close(Record(2, 64, 104), Layout(), 3.5, 0.5);
  EXPECT_EQ(statistics.Pace(), 32);
  EXPECT_EQ(statistics.committed_tokens(), 256);
}

TEST(RunStatistics, AnImplausibleLossCountsForNothing) {
  RoundRecord record = Record(1, 64, 100);
  const ModelOptions language;
  for (const double loss : {std::nan(""), -0.5, 1e5, -1e300, 0.0}) {
    record.contributions[1].mean_loss = loss;
    EXPECT_EQ(MeanLoss(record, language), 2) << "the mean of what remains, without " << loss;
  }
  record.contributions[0].mean_loss = std::nan("");
  EXPECT_EQ(MeanLoss(record, language), 0) << "none is known";
}

TEST(RunStatistics, TheLossOfAnExternalModelMayBeAnyNumber) {
  RoundRecord record = Record(1, 64, 100);
  const ModelOptions external{ExternalOptions()};
  record.contributions[0].mean_loss = -2;
  record.contributions[1].mean_loss = 2e5;
  EXPECT_EQ(MeanLoss(record, external), 0.25 * -2 + 0.75 * 2e5);
  record.contributions[0].mean_loss = record.contributions[1].mean_loss = -1e30;
  EXPECT_DOUBLE_EQ(MeanLoss(record, external), -1e30);
  record.contributions[1].mean_loss = -1e300;
  record.contributions[0].mean_loss = -3;
  EXPECT_EQ(MeanLoss(record, external), -3) << "beyond every bound";
}

TEST(RunStatistics, TokensCountWithFragmentZeroOnly) {
  const RunConfigs statistics_configs = Configs(SmallRun().run);
  RunStatistics statistics(&statistics_configs);
  EXPECT_EQ(statistics.TokensOf(FragmentId(0), Record(1, 64, 0).contributions), 128);
  EXPECT_EQ(statistics.TokensOf(FragmentId(1), Record(1, 64, 0).contributions), 0);
}

TEST(RunStatistics, RestoresFromRecords) {
  const RunConfigs statistics_configs = Configs(SmallRun().run);
  RunStatistics statistics(&statistics_configs);
  statistics.Restore({Record(1, 64, 100), Record(2, 64, 107), Record(1, 64, 105, 1)},
                     {{.fragment = FragmentId(0), .version = Version(0), .loss = 5, .tokens = 9}},
                     {Layout(0), Layout(1)});
  StatusView status;
  statistics.Describe(10, status);
  EXPECT_EQ(status.committed_tokens, 256);
  ASSERT_EQ(status.rounds.size(), 3);
  EXPECT_EQ(status.rounds[1].fragment, FragmentId(1)) << "in order of closing";
  EXPECT_EQ(status.rounds[2].open_seconds, 7);
  EXPECT_EQ(status.first_evaluation->loss, 5);
  EXPECT_EQ(status.push_bytes, 6 * 4096);
  EXPECT_EQ(status.pull_bytes, 6 * kSmallElements * 4) << "one pull per contribution";
  EXPECT_EQ(status.data_parallel_bytes, 6 * 2 * 8 * 800);
  EXPECT_EQ(statistics.Pace(), 0) << "the time between two lives says nothing of the pace";
  EXPECT_EQ(statistics.EtaSeconds(statistics.Pace()), 0);
  EXPECT_FALSE(statistics.AddEvaluation({.version = Version(0), .loss = 4, .tokens = 9}))
      << "the first one stands";
}

TEST(RunStatistics, CountsDeltasOfFollowersAfterARestart) {
  RunOptions run = SmallRun().run;
  run.pull_delta = CodecKind::kE3m0;
  std::vector<RoundRecord> rounds = {Record(1, 64, 100), Record(2, 64, 107), Record(3, 64, 109)};
  for (RoundRecord& round : rounds) {
    round.contributions[0].key.worker = "a";
    round.contributions[1].key.worker = "b";
  }
  const RunConfigs statistics_configs = Configs(run);
  RunStatistics statistics(&statistics_configs);
  statistics.Restore(rounds, {}, {Layout(0)});
  StatusView status;
  statistics.Describe(10, status);
  EXPECT_EQ(status.pull_bytes,
            2 * kSmallElements * 4 + 4 * CodecFor(CodecKind::kE3m0).EncodedSize(kSmallElements))
      << "each one's first pull is whole";
}

TEST(RunStatistics, ShowsTheNewest) {
  const RunConfigs statistics_configs = Configs(SmallRun().run);
  RunStatistics statistics(&statistics_configs);
  for (uint64_t version = 1; version <= 5; ++version)
    statistics.Close(Record(version, 64, 0), Layout(), 1, 0);
  StatusView status;
  statistics.Describe(2, status);
  ASSERT_EQ(status.rounds.size(), 2);
  EXPECT_EQ(status.rounds[1].version, Version(5));
  statistics.Describe(0, status);
  EXPECT_TRUE(status.rounds.empty());
}

std::vector<uint64_t> RoundsShown(const RunStatistics& statistics, uint32_t history = 10) {
  StatusView status;
  statistics.Describe(history, status);
  std::vector<uint64_t> versions;
  for (const RoundSummaryView& round : status.rounds) versions.push_back(round.version.value());
  return versions;
}

TEST(RunStatistics, LeavesOutWhatARestoreAbandoned) {
  const RunConfigs statistics_configs = Configs(SmallRun().run);
  RunStatistics statistics(&statistics_configs);
  for (uint64_t version = 1; version <= 5; ++version)
    statistics.Close(Record(version, 64, 0), Layout(), 1, 0);
  for (const uint64_t version : {0, 2, 5}) {
    statistics.AddEvaluation({.version = Version(version), .loss = 5, .tokens = 9});
  }
  statistics.Restored(256, {{FragmentId(0), Version(6), Version(2)}});
  EXPECT_EQ(RoundsShown(statistics), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(RoundsShown(statistics, 1), (std::vector<uint64_t>{2})) << "however many were abandoned since";
  StatusView status;
  statistics.Describe(1, status);
  ASSERT_EQ(status.evaluations.size(), 1);
  EXPECT_EQ(status.evaluations[0].version, Version(2));
  statistics.Describe(10, status);
  const std::vector<EvaluationView> all = AllEvaluations(status);
  ASSERT_EQ(all.size(), 3);
  EXPECT_EQ(all[2].version, Version(5));
  statistics.Close(Record(7, 64, 0), Layout(), 1, 0);
  EXPECT_EQ(RoundsShown(statistics), (std::vector<uint64_t>{1, 2, 7}));
  // Back to the branch that was abandoned.
  statistics.Restored(512, {{FragmentId(0), Version(8), Version(4)}});
  EXPECT_EQ(RoundsShown(statistics), (std::vector<uint64_t>{1, 2, 3, 4}));
}

TEST(RunStatistics, KnowsAfterARestartWhatWasAbandoned) {
  std::vector<RoundRecord> rounds;
  for (uint64_t version = 1; version <= 5; ++version) {
    rounds.push_back(Record(version, 64, static_cast<double>(version)));
    rounds.back().parameters.low = version;
  }
  const auto restore = [&](uint64_t version, const RoundRecord& source) {
    RoundRecord& record = rounds.emplace_back(source);
    record.version = Version(version);
    record.contributions.clear();
  };
  restore(6, Record(0, 64, 0));
  const RunConfigs from_scratch_configs = Configs(SmallRun().run);
  RunStatistics from_scratch(&from_scratch_configs);
  from_scratch.Restore(rounds, {}, {Layout()});
  EXPECT_TRUE(RoundsShown(from_scratch).empty());
  restore(7, RoundRecord(rounds[3]));
  const RunConfigs later_configs = Configs(SmallRun().run);
  RunStatistics later(&later_configs);
  later.Restore(rounds, {}, {Layout()});
  EXPECT_EQ(RoundsShown(later), (std::vector<uint64_t>{1, 2, 3, 4})) << "the parameters are those of 4";
  rounds.back().parameters = {};
  const RunConfigs without_configs = Configs(SmallRun().run);
  RunStatistics without(&without_configs);
  without.Restore(rounds, {}, {Layout()});
  EXPECT_EQ(RoundsShown(without), (std::vector<uint64_t>{1, 2, 3, 4})) << "as many tokens as that";
}

}  // namespace
}  // namespace atl

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "core/schedule.h"
#include "protos/config/run_config_codec.h"
#include "tests/server/rpc/configured_run.h"

// What a begun run is planned for stays, whatever its file says of the size of a round.

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

const AdminCaller kAnn{.user = "ann", .peer = "10.0.0.7:5"};
const RunConfigCodec kCodec;

const std::string kYaml =
    "run: {name: small, workers: 2, rounds: 6}\n"
    "model: {gpt: {layers: 1, heads: 1, width: 8, context: 8, vocabulary: 256}}\n"
    "data: {tokenizer: bytes, partitions: 8}\n"
    "inner: {steps: 2, learning_rate: 1e-3, warmup_steps: 2, batch: 4}\n"
    "codec: {push: fp32, pull_delta: none}\n"
    "checkpoint: {shards: 2}\n"
    "merge: {weights: uniform}\n"
    "round: {deadline_s: 100, start_workers: 2}\n";
constexpr uint64_t kRound = kStepTokens * 2 * 2;
constexpr uint64_t kBudget = 6 * kRound;

/// kYaml with other values.
std::string With(const std::map<std::string, std::string>& values) {
  std::string yaml = kYaml;
  for (const auto& [before, after] : values) {
    EXPECT_NE(yaml.find(before), std::string::npos) << before;
    yaml.replace(yaml.find(before), before.size(), after);
  }
  return yaml;
}

class TokenBudget : public testing::Test {
 protected:
  void Train(uint64_t rounds) {
    if (workers_.empty()) workers_ = run_.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
    for (const uint64_t end = head_ + rounds; head_ < end; ++head_) {
      uint32_t steps = 0;
      for (const MemberRef& worker : workers_) steps = run_.Pull(worker)->plan.inner_steps;
      const PushVariation done{.tokens = steps * Now().tokens_per_step(), .steps = steps};
      for (const MemberRef& worker : workers_) {
        const auto pushed = run_.Push(worker, head_, Fill([](size_t) { return 0.01F; }), done);
        ASSERT_TRUE(pushed.ok()) << pushed.status();
      }
      ASSERT_EQ(run_.Pull(workers_[0], head_)->snapshot->version, Version(head_ + 1));
    }
  }
  absl::Status Start(const std::string& yaml) {
    const CoordinatorOptions changed = ConfiguredRun(yaml);
    run_.options().config_bytes = changed.config_bytes;
    run_.options().run = changed.run;
    return run_.Restart();
  }
  StatusView Status() { return run_.coordinator().GetStatus(0); }
  RunOptions Now() { return *kCodec.Parse(Status().config_bytes); }
  std::string Told(size_t nth = 0) {
    EventCatcher events(&run_.coordinator());
    const auto changed = events.WaitFor(EventKind::kConfigChanged, nth);
    return changed ? changed->message : "";
  }

  TestRun run_{ConfiguredRun(kYaml), {.config_codec = &kCodec}};
  std::vector<MemberRef> workers_;
  uint64_t head_ = 0;
};

class FinishedBudget
    : public TokenBudget,
      public testing::WithParamInterface<std::tuple<std::map<std::string, std::string>, uint32_t>> {};

TEST_P(FinishedBudget, ARunStaysFinished) {
  const auto& [values, rounds] = GetParam();
  Train(6);
  ASSERT_EQ(Status().state, RunState::kFinished);
  const std::string file = With(values);
  ASSERT_TRUE(Start(file).ok());
  EXPECT_EQ(Status().state, RunState::kFinished);
  EXPECT_EQ(Status().total_tokens, kBudget);
  EXPECT_EQ(Now().rounds, rounds);
  EXPECT_DOUBLE_EQ(Status().learning_rate, Now().inner.learning_rate * 0.1);
  EXPECT_THAT(Told(), AllOf(HasSubstr("does not change the token budget of a begun run, which stays 768 "
                                      "tokens, and the run stays finished"),
                            HasSubstr("now a round has")));
  const uint64_t version = Status().config_version;
  ASSERT_TRUE(Start(file).ok()) << "the same file again";
  EXPECT_EQ(Status().config_version, version);
  // An extension says and does what it is.
  const auto extended = run_.admin().ExtendRun(kAnn, 3, 0, false);
  ASSERT_TRUE(extended.ok()) << extended.status();
  EXPECT_EQ(extended->rounds_after, rounds + 3);
  EXPECT_DOUBLE_EQ(extended->position, static_cast<double>(kBudget) / Now().tokens_per_position());
  EXPECT_DOUBLE_EQ(extended->rate_before, Now().inner.learning_rate * 0.1);
  EXPECT_DOUBLE_EQ(extended->rate_after, extended->rate_before);
  EXPECT_EQ(Status().total_tokens, kBudget + 3 * Now().tokens_per_round());
}

using Values = std::map<std::string, std::string>;
INSTANTIATE_TEST_SUITE_P(
    Files, FinishedBudget,
    testing::Values(std::tuple(Values{{"workers: 2", "workers: 4"}}, 3),
                    std::tuple(Values{{"workers: 2", "workers: 3"}}, 4),
                    std::tuple(Values{{"workers: 2", "workers: 1"}}, 12),
                    std::tuple(Values{{"batch: 4", "batch: 16"}, {"1e-3", "5e-3"}}, 2),
                    std::tuple(Values{{"steps: 2", "steps: 100"}}, 1),
                    std::tuple(Values{{"workers: 2, rounds: 6", "workers: 4, rounds: 2"}}, 3)));

TEST_F(TokenBudget, TheLearningRateGoesOnFromWhereItIs) {
  Train(2);
  const RunOptions before = Now();
  const double reached = LearningRateAt(before, SchedulePosition(before, 3 * kRound));
  for (const std::string& file :
       {With({{"workers: 2", "workers: 3"}}), With({{"batch: 4", "batch: 2, accumulation: 3"}}),
        With({{"workers: 2", "workers: 1"}, {"steps: 2", "steps: 3"}})}) {
    ASSERT_TRUE(Start(file).ok());
    const RunOptions after = Now();
    EXPECT_EQ(Status().total_tokens, kBudget);
    double last = 1;
    for (double tokens = 3 * kRound; tokens <= 2 * kBudget; tokens += kStepTokens) {
      const double rate = LearningRateAt(after, SchedulePosition(after, tokens));
      EXPECT_LE(rate, last) << tokens;
      last = rate;
    }
    const double rate = LearningRateAt(after, SchedulePosition(after, 3 * kRound));
    EXPECT_LE(rate, reached * (1 + 1e-9)) << "where the next round begins";
    EXPECT_GE(rate, reached * 0.9) << "the pace may change twice within a round";
    // The open round may count fewer tokens than planned.
    for (double tokens = 2 * kRound; tokens < 3 * kRound; tokens += kStepTokens) {
      const double early = LearningRateAt(after, SchedulePosition(after, tokens));
      EXPECT_LE(early, LearningRateAt(before, SchedulePosition(before, 2 * kRound)) * (1 + 1e-9)) << tokens;
      EXPECT_GE(early, rate) << tokens;
    }
    EXPECT_NEAR(last, 1e-4, 1e-12);
  }
  ASSERT_TRUE(Start(kYaml).ok());
  EXPECT_EQ(Now().rounds, 6u) << "the old values bring back the old rounds";
  EXPECT_EQ(Now().planned_tokens, 0u);
  Train(4);
  EXPECT_EQ(run_.Pull(workers_[0], 6)->outcome, PullOutcome::kRunFinished);
}

TEST_F(TokenBudget, WhatTheFileSaysOfTheRateIsTold) {
  Train(2);
  ASSERT_TRUE(Start(With({{"learning_rate: 1e-3", "learning_rate: 5e-3"}})).ok());
  EXPECT_THAT(Told(), AllOf(HasSubstr("inner.learning_rate: 0.001 -> 0.005"),
                            HasSubstr("the learning rate from the next round on: ")));
}

TEST_F(TokenBudget, ARejectionLeadsOut) {
  Train(4);
  const auto rejection = [&](const Values& values) {
    const absl::Status rejected = Start(With(values));
    EXPECT_EQ(rejected.code(), absl::StatusCode::kFailedPrecondition) << rejected;
    return std::string(rejected.message());
  };
  EXPECT_THAT(
      rejection({{"workers: 2, rounds: 6", "workers: 1, rounds: 25"}}),
      AllOf(HasSubstr("the file asks for 25 rounds, 1.60k tokens, and the run is planned for 768 tokens"),
            HasSubstr("Put run.rounds back to 6"), HasSubstr("run extend 13")));
  EXPECT_THAT(rejection({{"workers: 2, rounds: 6", "workers: 1, rounds: 8"}}),
              AllOf(HasSubstr("would end at once"), HasSubstr("Start with at least 9 rounds")));
  EXPECT_THAT(rejection({{"steps: 2", "steps: 1000"}}),
              AllOf(HasSubstr("one round of the file"), HasSubstr("at most 12 steps")));
  ASSERT_TRUE(Start(With({{"workers: 2", "workers: 1"}})).ok());
  EXPECT_EQ(Now().rounds, 12u);
  EXPECT_EQ(Status().config_version, 2u) << "a refused start leaves nothing";
  EXPECT_THAT(rejection({{"workers: 2, rounds: 6", "workers: 1, rounds: 9"}}),
              AllOf(HasSubstr("asks for 9 rounds, and at the last start it asked for 6. The run has 12, so"),
                    HasSubstr("To end the run at 9 rounds, start with run.rounds: 12,")));
  ASSERT_TRUE(Start(With({{"workers: 2, rounds: 6", "workers: 1, rounds: 12"}})).ok());
  ASSERT_TRUE(Start(With({{"workers: 2, rounds: 6", "workers: 1, rounds: 9"}})).ok()) << "ends it earlier";
  EXPECT_EQ(Status().total_tokens, 9 * kRound / 2);
  ASSERT_TRUE(
      Start(With({{"steps: 2", "steps: 8"}, {"rounds: 6", "rounds: 9"}, {"workers: 2", "workers: 1"}})).ok());
  EXPECT_EQ(Status().total_tokens, 9 * kRound / 2);
  EXPECT_EQ(Now().rounds, 3u);
}

/// A run of 6 rounds that has 30: trained for 6 of them, then extended by 24.
class ExtendedBudget : public TokenBudget {
 protected:
  void SetUp() override {
    Train(6);
    ASSERT_TRUE(run_.admin().ExtendRun(kAnn, 24, 0, false).ok());
    Train(1);
    ASSERT_EQ(Status().total_tokens, 30 * kRound);
  }
  void ExpectRejected(const Values& values, const std::string& message) {
    const std::string recorded = Status().config_bytes;
    const absl::Status rejected = Start(With(values));
    EXPECT_EQ(rejected.code(), absl::StatusCode::kFailedPrecondition) << rejected;
    EXPECT_THAT(std::string(rejected.message()), AllOf(HasSubstr(message), HasSubstr("Nothing was changed")));
    ASSERT_TRUE(Start(kYaml).ok());
    EXPECT_EQ(Status().config_bytes, recorded);
  }
  /// In rounds of the file; of 2 workers, 2 steps and a batch of 4: kRound.
  void ExpectKept(const Values& values, uint32_t rounds) {
    const absl::Status started = Start(With(values));
    ASSERT_TRUE(started.ok()) << started;
    EXPECT_EQ(Status().total_tokens, 30 * kRound);
    EXPECT_EQ(Now().rounds, rounds);
    EXPECT_GT(Now().extension.steps_added, 0u);
  }
};

TEST_F(ExtendedBudget, AFileWithItsOldRoundsKeepsTheExtension) {
  ExpectKept({}, 30);
  ExpectKept({{"1e-3", "2e-3"}}, 30);
  ExpectKept({{"workers: 2", "workers: 4"}}, 15);
  ExpectKept({{"workers: 2", "workers: 4"}, {"steps: 2", "steps: 1"}}, 30);
  ExpectKept({{"batch: 4", "batch: 2"}}, 60);
  ExpectKept({{"steps: 2", "steps: 4"}, {"deadline_s: 100", "deadline_s: 70"}}, 15);
  ExpectKept({}, 30);
}

TEST_F(ExtendedBudget, ARaisedFileThatWouldShortenTheRunIsRejected) {
  const std::string shorter = "would not extend it but end it earlier";
  ExpectRejected({{"rounds: 6", "rounds: 7"}},
                 "asks for 7 rounds, and at the last start it asked for 6. The");
  ExpectRejected({{"rounds: 6", "rounds: 29"}}, "The run has 30, with its extension, so the file " + shorter);
  ExpectRejected({{"rounds: 6", "rounds: 20"}}, "Put run.rounds back to 6, or start without --config; for ");
  ExpectRejected({{"rounds: 6", "rounds: 20"}, {"deadline_s: 100", "deadline_s: 70"}}, shorter);
  ExpectRejected({{"workers: 2, rounds: 6", "workers: 4, rounds: 10"}}, "The run has 15, with its extension");
  ExpectRejected({{"rounds: 6", "rounds: 40"}, {"batch: 4", "batch: 2"}}, "The run has 60, with its extens");
  ExpectRejected({{"rounds: 6", "rounds: 10"}, {"steps: 2", "steps: 4"}}, shorter);
}

TEST_F(ExtendedBudget, ARaisedFileThatWouldExtendItIsRejected) {
  ExpectRejected({{"rounds: 6", "rounds: 31"}}, "Put run.rounds back to 6, or start without --config, then");
  ExpectRejected({{"workers: 2, rounds: 6", "workers: 1, rounds: 70"}}, "run extend 10`");
}

TEST_F(ExtendedBudget, AFileMayHaveTheRoundsOfTheExtendedRunAndThenFewer) {
  ExpectKept({{"rounds: 6", "rounds: 30"}}, 30);
  EXPECT_THAT(std::string(Start(With({{"rounds: 6", "rounds: 31"}})).message()),
              HasSubstr("Put run.rounds back to 30,"));
  ASSERT_TRUE(Start(With({{"rounds: 6", "rounds: 20"}})).ok());
  EXPECT_EQ(Status().total_tokens, 20 * kRound);
  EXPECT_THAT(Told(2), HasSubstr("the run ends earlier, at 20 rounds instead of 30, and its extension is "));
}

TEST_F(ExtendedBudget, AFileThatKnowsTheExtensionMayShortenIt) {
  const std::string shown = ", extended_at_step: 12, extended_from: 0.1, extended_steps: 48";
  ExpectKept({{"rounds: 6", "rounds: 30" + shown}}, 30);
  ASSERT_TRUE(Start(With({{"rounds: 6", "rounds: 20" + shown}})).ok());
  EXPECT_EQ(Status().total_tokens, 20 * kRound);
  EXPECT_EQ(Now().extension.steps_added, 0u);
}

TEST_F(ExtendedBudget, TheSameTokensInRoundsOfAnotherSizeKeepTheExtension) {
  ExpectKept({{"workers: 2, rounds: 6", "workers: 1, rounds: 12"}}, 60);
  ExpectKept({{"workers: 2, rounds: 6", "workers: 1, rounds: 60"}}, 60);
}

TEST_F(ExtendedBudget, ALoweredFileEndsItUnlessThatIsTrained) {
  ExpectRejected({{"rounds: 6", "rounds: 5"}}, "Start with at least 8 rounds");
  ExpectRejected({{"workers: 2, rounds: 6", "workers: 4, rounds: 2"}}, "would end at once");
}

TEST_F(TokenBudget, ALoweredFileShortensAnExtendedRun) {
  Train(1);
  ASSERT_TRUE(run_.admin().ExtendRun(kAnn, 24, 0, false).ok());
  ASSERT_TRUE(Start(With({{"rounds: 6", "rounds: 5"}})).ok());
  EXPECT_EQ(Status().total_tokens, 5 * kRound);
  EXPECT_THAT(Told(1), HasSubstr("the run ends earlier, at 5 rounds instead of 30, and its extension is "));
}

TEST_F(TokenBudget, AFinishedExtendedRunRejectsARaisedFile) {
  Train(6);
  ASSERT_TRUE(run_.admin().ExtendRun(kAnn, 2, 0, false).ok());
  Train(2);
  ASSERT_EQ(Status().state, RunState::kFinished);
  EXPECT_EQ(Start(With({{"rounds: 6", "rounds: 7"}})).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(Start(With({{"rounds: 6", "rounds: 5"}})).ok()) << "it ignores fewer";
  EXPECT_EQ(Status().state, RunState::kFinished);
  EXPECT_EQ(Status().total_tokens, 8 * kRound);
}

TEST_F(TokenBudget, OtherRoundsTakeAnExtensionBackBeforeAnythingIsTrained) {
  ASSERT_TRUE(run_.admin().ExtendRun(kAnn, 24, 0, false).ok());
  ASSERT_TRUE(Start(With({{"1e-3", "2e-3"}})).ok());
  EXPECT_EQ(Now().rounds, 30u);
  ASSERT_TRUE(Start(With({{"rounds: 6", "rounds: 9"}})).ok());
  EXPECT_EQ(Now().rounds, 9u);
  EXPECT_THAT(Told(2), HasSubstr("the run has 9 rounds instead of 30, and its extension is taken back"));
}

TEST_F(TokenBudget, ARejectionNamesTheRoundsOfTheFile) {
  Train(1);
  ASSERT_TRUE(run_.admin().SetConfig(kAnn, {{"inner.steps", "4"}}, 0, false).ok());
  EXPECT_EQ(Now().rounds, 3u);
  const absl::Status rejected = Start(With({{"rounds: 6", "rounds: 9"}}));
  EXPECT_THAT(std::string(rejected.message()), HasSubstr("Put run.rounds back to 6"));
}

TEST_F(TokenBudget, AWarmupThatIsOverIsNoReasonToReject) {
  Train(2);
  const absl::Status started =
      Start(With({{"steps: 2", "steps: 1"}, {"batch: 4", "batch: 4, accumulation: 12"}}));
  ASSERT_TRUE(started.ok()) << started;
  EXPECT_EQ(Now().rounds, 1u) << "fewer steps than the warmup has";
}

TEST_F(TokenBudget, OneRoundDoesNotExceedIt) {
  const auto set = [&](const std::string& steps) {
    return run_.admin().SetConfig(kAnn, {{"inner.steps", steps}}, 0, false);
  };
  const auto rejected = set("1000000");
  EXPECT_EQ(rejected.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(rejected.status().message()),
              AllOf(HasSubstr("inner.steps: one round of 1000000 steps"),
                    HasSubstr("times the token budget of the whole run (768); at most 12 steps")));
  EXPECT_FALSE(set("13").ok());
  const auto done = set("5");
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_THAT(done->changes, Contains("run.rounds: 6 -> 3 (with inner.steps, so that the token budget stays "
                                      "768 tokens)"));
  EXPECT_EQ(Status().total_tokens, kBudget);
}

TEST_F(TokenBudget, ThePastKeepsItsLearningRates) {
  const auto exported = [&] {
    std::map<uint64_t, double> rates;
    EXPECT_TRUE(run_.admin()
                    .ExportMetrics([&](const MetricPointView& point) {
                      if (point.name == "train/learning_rate") rates[point.version.value()] = point.value;
                      return true;
                    })
                    .ok());
    return rates;
  };
  Train(3);
  const std::map<uint64_t, double> before = exported();
  ASSERT_EQ(before.size(), 3u);
  const auto set = run_.admin().SetConfig(kAnn, {{"inner.learning_rate", "0.01"}}, 0, false);
  ASSERT_TRUE(set.ok());
  EXPECT_THAT(set->changes, Contains(HasSubstr("the learning rate of the next round: ")));
  EXPECT_EQ(exported(), before);
  Train(1);  // opened before
  Train(1);
  const std::map<uint64_t, double> after = exported();
  EXPECT_EQ(after.at(3), before.at(3));
  EXPECT_LT(after.at(4), before.at(3));
  EXPECT_GT(after.at(5), 2 * after.at(4));
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_EQ(exported(), after);
}

}  // namespace
}  // namespace atl

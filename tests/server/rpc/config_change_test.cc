#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>

#include "atoll/v1/run.pb.h"
#include "core/codec.h"
#include "core/schedule.h"
#include "protos/config/run_config.h"
#include "protos/config/run_config_codec.h"
#include "protos/config/schema.h"
#include "server/members/worker_count.h"
#include "server/rejection.h"
#include "tests/fakes/fake_launcher.h"
#include "tests/server/rpc/configured_run.h"

// What an operator sets while the run goes on: from the next round, recorded, and nothing that a run cannot
// change.

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const AdminCaller kAnn{.user = "ann", .peer = "10.0.0.7:5"};
const RunConfigCodec kCodec;

const std::string kYaml = std::string(kSmallRunYaml) +
                          "merge: {weights: uniform}\n"
                          "round: {deadline_s: 100, start_workers: 2}\n";

class AdminConfig : public testing::Test {
 protected:
  absl::StatusOr<ConfigView> Set(const std::vector<ConfigSetting>& settings, uint64_t expected = 0,
                                 bool dry_run = false) {
    return run_.admin().SetConfig(kAnn, settings, expected, dry_run);
  }
  std::string Rejection(const std::vector<ConfigSetting>& settings, absl::StatusCode code) {
    const auto rejected = Set(settings);
    EXPECT_EQ(rejected.status().code(), code) << rejected.status();
    return std::string(rejected.status().message());
  }
  void Round(const std::vector<MemberRef>& workers, uint64_t base) {
    for (const MemberRef& worker : workers) {
      const auto pushed = run_.Push(worker, base, Fill([](size_t) { return 0.01F; }));
      EXPECT_TRUE(pushed.ok()) << pushed.status();
    }
    EXPECT_EQ(run_.Pull(workers[0], base)->snapshot->version, Version(base + 1));
  }
  std::map<uint64_t, double> Exported(const std::string& name) {
    std::map<uint64_t, double> by_version;
    EXPECT_TRUE(run_.admin()
                    .ExportMetrics([&](const MetricPointView& point) {
                      if (point.name == name) by_version[point.version.value()] = point.value;
                      return true;
                    })
                    .ok());
    return by_version;
  }

  TestRun run_{ConfiguredRun(kYaml), {.config_codec = &kCodec}};
};

TEST_F(AdminConfig, IsInForceFromTheNextRound) {
  std::optional<EventCatcher> events(std::in_place, &run_.coordinator());
  const std::vector<MemberRef> workers = run_.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  for (const MemberRef& worker : workers) EXPECT_EQ(run_.Pull(worker)->plan.inner_steps, 2);
  const auto set = Set({{"outer.learning_rate", "0.25"}, {"inner.steps", "4"}, {"round.deadline_s", "50"}});
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->version, 2);
  EXPECT_THAT(
      set->changes,
      ElementsAre("run.rounds: 100 -> 50 (with inner.steps, so that the token budget stays 12.8k "
                  "tokens)",
                  "inner.steps: 2 -> 4", "outer.learning_rate: 0.7 -> 0.25", "round.deadline_s: 100 -> 50"));
  EXPECT_EQ(run_.Pull(workers[0])->plan.inner_steps, 2) << "the open round keeps its own";
  Round(workers, 0);
  EXPECT_EQ(run_.Pull(workers[0])->plan.inner_steps, 4);
  for (const MemberRef& worker : workers) ASSERT_TRUE(run_.Pull(worker).ok());
  Round(workers, 1);
  EXPECT_EQ(Exported("outer/learning_rate"), (std::map<uint64_t, double>{{1, 0.7}, {2, 0.25}}));
  EXPECT_EQ(Exported("round/config_version"), (std::map<uint64_t, double>{{1, 1}, {2, 2}}));
  const StatusView status = run_.coordinator().GetStatus(0);
  EXPECT_EQ(status.config_version, 2);
  EXPECT_EQ(status.total_tokens, run_.options().run.total_tokens()) << "the budget stays what it was";
  EXPECT_THAT(events->WaitFor(EventKind::kConfigChanged)->message,
              HasSubstr("configuration version 2 by ann (10.0.0.7:5)"));
  // The rounds can be replayed with the values that were applied to each.
  run_.WaitForStored(2);  // else the round would wait for it
  run_.faults().store = true;
  Round(workers, 2);
  events.reset();
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_EQ(run_.coordinator().GetStatus(0).fragments[0].version, Version(3));
}

TEST_F(AdminConfig, StepsThatAreSetBackBringBackTheRounds) {
  const auto rounds_with = [&](uint32_t steps) {
    const auto set = Set({{"inner.steps", std::to_string(steps)}});
    EXPECT_TRUE(set.ok()) << set.status();
    return kCodec.Parse(run_.coordinator().GetStatus(0).config_bytes)->rounds;
  };
  EXPECT_EQ(rounds_with(150), 2u) << "the second one ends with the budget";
  EXPECT_EQ(rounds_with(7), 29u) << "for the 200 steps that were planned";
  EXPECT_EQ(rounds_with(2), 100u);
  // Also when it is extended in between, over restarts, and where a value is set that has nothing to do with
  // it.
  EXPECT_EQ(rounds_with(150), 2u);
  EXPECT_EQ(run_.coordinator().GetStatus(0).total_tokens, run_.options().run.total_tokens());
  run_.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  ASSERT_TRUE(run_.admin().ExtendRun(kAnn, 2, 0, false).ok());
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_EQ(rounds_with(7), 72u) << "200 steps and the 300 of the extension";
  ASSERT_TRUE(Set({{"round.deadline_s", "50"}}).ok());
  EXPECT_EQ(rounds_with(2), 250u);
}

TEST_F(AdminConfig, ARestartChangesNothingOfTheOpenRound) {
  const std::vector<MemberRef> workers = run_.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  for (const MemberRef& worker : workers) ASSERT_TRUE(run_.Pull(worker).ok());
  ASSERT_TRUE(Set({{"inner.steps", "4"}, {"outer.learning_rate", "0.25"}, {"round.quorum", "1"}}).ok());
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_EQ(run_.Pull(workers[0])->plan.inner_steps, 2);
  EXPECT_EQ(run_.Pull(workers[0])->plan.config_version, 1);
  EXPECT_EQ(run_.TryJoin("judge", "", WorkerRole::kEvaluator)->config_version, 1)
      << "whoever joins is told that of the open round";
  Round(workers, 0);
  // The same where the file changed, and the coordinator was restarted in the round of the version set
  // before.
  CoordinatorOptions changed = ConfiguredRun(kYaml + "outer: {learning_rate: 0.125}\n");
  run_.options().config_bytes = changed.config_bytes;
  run_.options().run = changed.run;
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_EQ(run_.Pull(workers[0])->plan.inner_steps, 4);
  for (const MemberRef& worker : workers) ASSERT_TRUE(run_.Pull(worker).ok());
  Round(workers, 1);
  EXPECT_EQ(run_.Pull(workers[0])->plan.inner_steps, 2) << "the file's, from the next round";
  for (const MemberRef& worker : workers) ASSERT_TRUE(run_.Pull(worker).ok());
  Round(workers, 2);
  EXPECT_EQ(Exported("outer/learning_rate"), (std::map<uint64_t, double>{{1, 0.7}, {2, 0.25}, {3, 0.125}}));
  EXPECT_EQ(Exported("round/config_version"), (std::map<uint64_t, double>{{1, 1}, {2, 2}, {3, 3}}));
}

TEST_F(AdminConfig, ALeaseIsThatOfTheNextHeartbeat) {
  const std::vector<MemberRef> workers = run_.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  EXPECT_EQ(run_.Heartbeat(workers[0])->lease, Seconds(15));
  ASSERT_TRUE(Set({{"round.lease_s", "30"}}).ok());
  EXPECT_EQ(run_.Heartbeat(workers[0])->lease, Seconds(30));
  run_.clock().Advance(Seconds(20));
  EXPECT_TRUE(Eventually([&] { return run_.coordinator().ListWorkers(false).size() == 1; }))
      << "the other one was not told yet";
  EXPECT_EQ(run_.coordinator().ListWorkers(false)[0].name, "a");
  ASSERT_TRUE(Set({{"round.lease_s", "6"}}).ok());
  EXPECT_EQ(run_.Heartbeat(workers[0])->lease, Seconds(6));
  EXPECT_EQ(run_.TryJoin("c")->heartbeat, Seconds(2));
  EXPECT_THAT(Rejection({{"round.lease_s", "3.5"}}, absl::StatusCode::kInvalidArgument),
              HasSubstr("round.lease_s: 3.5 s are too short for the workers that are there"));
}

TEST_F(AdminConfig, TheDutyOfEvaluationMovesToAnEvaluatorAndBack) {
  const std::vector<MemberRef> workers = run_.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  const MemberRef judge = run_.Join("judge", WorkerRole::kEvaluator);
  EXPECT_TRUE(run_.Pull(workers[0])->plan.evaluate);
  EXPECT_FALSE(run_.Pull(judge)->plan.evaluate);
  ASSERT_TRUE(Set({{"evaluation.by", "evaluator"}}).ok());
  ASSERT_TRUE(run_.Pull(workers[1]).ok());
  Round(workers, 0);
  EXPECT_FALSE(run_.Pull(workers[0])->plan.evaluate);
  EXPECT_TRUE(run_.Pull(judge)->plan.evaluate);
  ASSERT_TRUE(Set({{"evaluation.by", "worker"}}).ok());
  ASSERT_TRUE(run_.Pull(workers[1]).ok());
  Round(workers, 1);
  EXPECT_TRUE(run_.Pull(workers[0])->plan.evaluate);
  EXPECT_FALSE(run_.Pull(judge)->plan.evaluate);
}

TEST_F(AdminConfig, ANewCodecIsThatOfTheNextRound) {
  const std::vector<MemberRef> workers = run_.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  for (const MemberRef& worker : workers) ASSERT_TRUE(run_.Pull(worker).ok());
  ASSERT_TRUE(Set({{"codec.push", "fp16"}, {"inner.learning_rate", "0.01"}}).ok());
  EXPECT_EQ(run_.Pull(workers[0])->plan.config_version, 1);
  Round(workers, 0);
  EXPECT_EQ(run_.Pull(workers[0])->plan.config_version, 2) << "its worker asks for the configuration now";
  const std::vector<float> values = Fill([](size_t) { return 0.01F; });
  std::vector<std::byte> payload(CodecFor(CodecKind::kFp16).EncodedSize(values.size()));
  CodecFor(CodecKind::kFp16).Encode(values, payload);
  for (const MemberRef& worker : workers) {
    const auto session =
        run_.coordinator().StartPush(worker, run_.MakePush(1, payload, {.codec = CodecKind::kFp16}));
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_TRUE((*session)->Append(0, payload).ok());
    ASSERT_TRUE((*session)->Finish().ok());
  }
  EXPECT_EQ(run_.Pull(workers[0], 1)->snapshot->version, Version(2));
  EXPECT_EQ(ReasonOf(run_.Push(workers[0], 2, values).status()), RejectionReason::kWrongCodec)
      << "one round later the codec of before is over";
}

TEST_F(AdminConfig, ARoundTakesTheCodecsThatWereSetSinceItWasOpened) {
  std::vector<MemberRef> workers = run_.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  for (const MemberRef& worker : workers) ASSERT_TRUE(run_.Pull(worker).ok());
  ASSERT_TRUE(Set({{"codec.push", "fp16"}}).ok());
  ASSERT_TRUE(Set({{"codec.push", "bf16"}}).ok());
  // A worker that joins in the middle of the round is told of the newest configuration only; one that knows
  // the one before pushes to a fragment whose round began under the first.
  ASSERT_TRUE(run_.Restart().ok());
  const std::vector<float> values = Fill([](size_t) { return 0.01F; });
  for (const auto& [worker, kind] :
       {std::pair(workers[0], CodecKind::kFp16), std::pair(workers[1], CodecKind::kBf16)}) {
    const MemberRef back = run_.Join(worker.worker);
    ASSERT_TRUE(run_.Pull(back).ok());
    std::vector<std::byte> payload(CodecFor(kind).EncodedSize(values.size()));
    CodecFor(kind).Encode(values, payload);
    const auto session = run_.coordinator().StartPush(back, run_.MakePush(0, payload, {.codec = kind}));
    ASSERT_TRUE(session.ok()) << session.status();
    ASSERT_TRUE((*session)->Append(0, payload).ok());
    ASSERT_TRUE((*session)->Finish().ok());
    workers[0] = back;
  }
  EXPECT_EQ(run_.Pull(workers[0], 0)->snapshot->version, Version(1));
  EXPECT_EQ(run_.Pull(workers[0])->plan.config_version, 3);
}

TEST_F(AdminConfig, WhatIsSettledIsRejectedByName) {
  using absl::StatusCode;
  for (const auto& [path, value] : std::map<std::string, std::string>{{"model.gpt.layers", "2"},
                                                                      {"data.partitions", "16"},
                                                                      {"data.sequences", "across_files"},
                                                                      {"data.isolate_documents", "true"},
                                                                      {"inner.batch", "8"},
                                                                      {"inner.optimizer", "sgd"},
                                                                      {"codec.pull", "bf16"},
                                                                      {"outer.optimizer", "sgd"},
                                                                      {"run.seed", "7"},
                                                                      {"run.name", "other"},
                                                                      {"checkpoint.shards", "3"}}) {
    EXPECT_THAT(Rejection({{path, value}}, StatusCode::kFailedPrecondition),
                HasSubstr(path + ": is settled when a run begins"));
  }
  EXPECT_THAT(
      Rejection({{"round.start_workers", "1"}}, StatusCode::kFailedPrecondition),
      HasSubstr("To end the wait of its first round, start the coordinator again with a lower number in its "
                "--config, or close the round with `atollctl run close-round` once a contribution"));
  EXPECT_THAT(Rejection({{"run.rounds", "7"}}, StatusCode::kFailedPrecondition),
              HasSubstr("run.rounds: is not set but extended, with `atollctl run extend ROUNDS`"));
  EXPECT_EQ(run_.admin().ListConfigs()->size(), 1);
}

TEST_F(AdminConfig, WhatIsWrongIsRejectedByPathValueAndRange) {
  using absl::StatusCode;
  EXPECT_THAT(Rejection({{"round.quorum", "1.5"}}, StatusCode::kInvalidArgument),
              HasSubstr("'round.quorum': 1.5 is out of range; allowed: "));
  EXPECT_THAT(Rejection({{"round.quorom", "1"}}, StatusCode::kInvalidArgument),
              HasSubstr("unknown field 'quorom'; did you mean 'quorum'?"));
  EXPECT_THAT(Rejection({{"round", "1"}}, StatusCode::kInvalidArgument), HasSubstr("is a section"));
  EXPECT_THAT(Rejection({{"round.quorum.x", "1"}}, StatusCode::kInvalidArgument),
              HasSubstr("'quorum' is a field, not a section"));
  EXPECT_THAT(Rejection({{"", "1"}}, StatusCode::kInvalidArgument), HasSubstr("unknown field ''"));
  EXPECT_THAT(Rejection({{"inner.steps", "many"}}, StatusCode::kInvalidArgument), HasSubstr("'many'"));
  EXPECT_THAT(Rejection({{"merge.method", "mediann"}}, StatusCode::kInvalidArgument),
              HasSubstr("did you mean 'median'"));
  EXPECT_THAT(Rejection({{"round.minimum", "3"}}, StatusCode::kInvalidArgument),
              HasSubstr("round.minimum: 3 is above run.workers"));
  EXPECT_THAT(Rejection({{"round.quorum", "0.5"}, {"round.quorum", "0.6"}}, StatusCode::kInvalidArgument),
              HasSubstr("is given twice"));
  EXPECT_THAT(Rejection({}, StatusCode::kInvalidArgument), HasSubstr("nothing to set"));
  EXPECT_EQ(run_.admin().ListConfigs()->size(), 1);
}

TEST_F(AdminConfig, ValuesThatAreInForceChangeNothing) {
  for (const bool dry_run : {true, false}) {
    const auto same = Set({{"round.deadline_s", "100"}}, 1, dry_run);
    ASSERT_TRUE(same.ok()) << same.status();
    EXPECT_EQ(same->version, 1);
    EXPECT_THAT(same->changes, ElementsAre());
  }
  EXPECT_EQ(run_.admin().ListConfigs()->size(), 1);
  EXPECT_EQ(Set({{"model.gpt.layers", "7"}}).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(AdminConfig, ADryRunChangesNothingAndAnOldViewIsTold) {
  const auto checked = Set({{"round.quorum", "0.5"}}, 1, /*dry_run=*/true);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_THAT(checked->changes, ElementsAre("round.quorum: 1 -> 0.5"));
  EXPECT_EQ(run_.admin().ListConfigs()->size(), 1);
  ASSERT_TRUE(Set({{"round.quorum", "0.5"}}, 1).ok());
  const auto late = Set({{"round.quorum", "0.6"}}, 1);
  EXPECT_EQ(late.status().code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(late.status().message()), HasSubstr("version 2 (by ann (10.0.0.7:5)) is in force"));
}

TEST_F(AdminConfig, SurvivesARestartWithTheSameFileAndYieldsToAChangedOne) {
  ASSERT_TRUE(Set({{"round.deadline_s", "50"}, {"limits.max_workers", "9"}}).ok());
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_EQ(run_.coordinator().GetStatus(0).config_version, 2);
  auto deadline = [&] { return kCodec.Parse(run_.coordinator().GetStatus(0).config_bytes)->round.deadline; };
  EXPECT_EQ(deadline(), Seconds(50));
  std::string changed = kYaml;
  changed.replace(changed.find("deadline_s: 100"), 15, "deadline_s: 70 ");
  run_.options() = ConfiguredRun(changed);
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_EQ(run_.coordinator().GetStatus(0).config_version, 3);
  EXPECT_EQ(deadline(), Seconds(70));
  const auto configs = run_.admin().ListConfigs();
  ASSERT_EQ(configs->size(), 3);
  EXPECT_EQ((*configs)[0].author, "start");
  EXPECT_EQ((*configs)[1].author, "ann (10.0.0.7:5)");
  EXPECT_THAT((*configs)[2].changes,
              ElementsAre("round.deadline_s: 50 -> 70", "limits.max_workers: 9 -> 1000"));
}

TEST_F(AdminConfig, AChangedFileTellsWhichSettingsItTakesBack) {
  ASSERT_TRUE(Set({{"round.deadline_s", "50"}, {"limits.max_workers", "9"}, {"inner.steps", "4"}}).ok());
  ASSERT_TRUE(Set({{"codec.push", "int8"}, {"round.quorum", "0.5"}}).ok());
  ASSERT_TRUE(Set({{"round.quorum", "1"}}).ok());
  const auto told = [&](const std::string& yaml) {
    run_.options() = ConfiguredRun(yaml);
    EXPECT_TRUE(run_.Restart().ok());
    EventCatcher events(&run_.coordinator());
    const auto changed = events.WaitFor(EventKind::kConfigChanged, run_.admin().ListConfigs()->size() - 2);
    return changed ? changed->message : "";
  };
  std::string file = kYaml;
  file.replace(file.find("deadline_s: 100"), 15, "deadline_s: 70 ");
  EXPECT_THAT(
      told(file),
      AllOf(HasSubstr("takes back what `atollctl config set` changed since the last start: inner.steps: 4 -> "
                      "2, codec.push: int8 -> fp32, limits.max_workers: 9 -> 1000. To restore these"),
            HasSubstr("`atollctl config set inner.steps=4 codec.push=int8 limits.max_workers=9`")));
  file.replace(file.find("deadline_s: 70"), 14, "deadline_s: 80");
  EXPECT_THAT(told(file), AllOf(HasSubstr("round.deadline_s: 70 -> 80"), Not(HasSubstr("takes back"))));
}

TEST_F(AdminConfig, LimitsAreInForceAtOnce) {
  run_.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  ASSERT_TRUE(Set({{"limits.max_workers", "2"}}).ok());
  EXPECT_EQ(run_.TryJoin("c").status().code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(Set({{"limits.max_workers", "3"}}).ok());
  EXPECT_TRUE(run_.TryJoin("c").ok());
}

TEST_F(AdminConfig, TheBudgetOfContributionsSurvivesARestartWithTheSameFile) {
  struct Budget : CoordinatorObserver {
    void OnContributionBudget(uint64_t, uint64_t limit) override { limit_bytes = limit; }
    std::atomic<uint64_t> limit_bytes{0};
  };
  Budget budget;
  TestRun run(ConfiguredRun(kYaml), {.config_codec = &kCodec, .observer = &budget});
  const auto is = [&](uint64_t mib) { return Eventually([&] { return budget.limit_bytes == mib << 20; }); };
  EXPECT_TRUE(is(4096));
  ASSERT_TRUE(run.admin().SetConfig(kAnn, {{"limits.contribution_budget_mib", "7"}}, 0, false).ok());
  EXPECT_TRUE(is(7));
  budget.limit_bytes = 0;
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_TRUE(is(7)) << budget.limit_bytes;
}

TEST(DefaultStalenessLimit, OfARunThatWasBegunWithoutItStaysAsRecorded) {
  v1::RunConfig recorded = *ParseRunConfig(kYaml, "test");
  recorded.mutable_round()->set_staleness_limit(0);  // as a coordinator that had no such default recorded it
  CoordinatorOptions old = ConfiguredRun(kYaml);
  old.config_bytes = recorded.SerializeAsString();
  old.run = *ToRunOptions(recorded);
  TestRun run(old, {.config_codec = &kCodec});
  ASSERT_TRUE(run.admin().SetConfig(kAnn, {{"limits.max_workers", "9"}}, 0, false).ok());
  const auto limit = [&] {
    return kCodec.Parse(run.coordinator().GetStatus(0).config_bytes)->round.staleness_limit;
  };
  run.options() = ConfiguredRun(kYaml);
  run.options().staleness_open = true;
  EXPECT_EQ(run.options().run.round.staleness_limit, 1u) << "of a new run";
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_EQ(limit(), 0u);
  EXPECT_EQ(run.coordinator().GetStatus(0).config_version, 2) << "the same file: what was set stays";
  std::string changed = kYaml;
  changed.replace(changed.find("deadline_s: 100"), 15, "deadline_s: 70 ");
  run.options() = ConfiguredRun(changed);
  run.options().staleness_open = true;
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_EQ(limit(), 0u);
  EXPECT_EQ(run.coordinator().GetStatus(0).config_version, 3);
}

TEST_F(AdminConfig, TheHeartbeatIsThatOfTheRecordedLeaseAfterARestart) {
  ASSERT_TRUE(Set({{"round.lease_s", "60"}}).ok());
  ASSERT_TRUE(run_.Restart().ok());
  const auto joined = run_.TryJoin("a");
  ASSERT_TRUE(joined.ok());
  EXPECT_EQ(joined->lease, Seconds(60));
  EXPECT_EQ(joined->heartbeat, Seconds(20));
}

TEST(DefaultPartitions, LeaveRoomForMoreWorkersAndAreRecorded) {
  std::string open = kYaml;
  open.replace(open.find(", partitions: 8"), 15, "");
  TestRun run(ConfiguredRun(open), {.config_codec = &kCodec});
  const auto recorded = [&] {
    return kCodec.Parse(run.coordinator().GetStatus(0).config_bytes)->data.partitions;
  };
  EXPECT_EQ(recorded(), 64u);
  for (const char* name : {"a", "b", "c", "d", "e"}) EXPECT_TRUE(run.TryJoin(name).ok()) << name;
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_EQ(run.coordinator().GetStatus(0).config_version, 1) << "the same file changes nothing";
  // A file for more workers leaves the data order as it was recorded.
  open.replace(open.find("workers: 2"), 10, "workers: 3");
  const CoordinatorOptions more = ConfiguredRun(open);
  run.options().config_bytes = more.config_bytes;
  run.options().run = more.run;
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_EQ(recorded(), 64u);
  EXPECT_EQ(run.coordinator().GetStatus(0).config_version, 2);
}

TEST(DefaultPartitions, ARunThatRecordedNoneHasOneForEachPlannedWorker) {
  std::string open = kYaml;
  open.replace(open.find(", partitions: 8"), 15, "");
  TestRun run(ConfiguredRun(open));  // as a coordinator that records what the file says
  run.Stop();
  run.UseCodec(&kCodec);
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_EQ(kCodec.Parse(run.coordinator().GetStatus(0).config_bytes)->data.partitions, 2u);
  EXPECT_EQ(run.coordinator().GetStatus(0).config_version, 1);
  EXPECT_TRUE(run.TryJoin("a").ok());
  EXPECT_TRUE(run.TryJoin("b").ok());
  EXPECT_EQ(run.TryJoin("c").status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(AdminConfig, AnExtensionIsShownRecordedAndNeverRaisesTheLearningRate) {
  const std::vector<MemberRef> workers = run_.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  for (uint64_t base = 0; base < 20; ++base) {
    for (const MemberRef& worker : workers) ASSERT_TRUE(run_.Pull(worker).ok());
    Round(workers, base);
  }
  const double position = run_.coordinator().GetStatus(0).position_steps;
  const auto shown = run_.admin().ExtendRun(kAnn, 50, 0, /*dry_run=*/true);
  ASSERT_TRUE(shown.ok()) << shown.status();
  EXPECT_EQ(shown->rounds_before, 100u);
  EXPECT_EQ(shown->rounds_after, 150u);
  EXPECT_EQ(shown->position, position);
  EXPECT_DOUBLE_EQ(shown->rate_after, shown->rate_before);
  EXPECT_DOUBLE_EQ(shown->final_rate, 1e-4);
  EXPECT_EQ(run_.admin().ListConfigs()->size(), 1u) << "only shown";
  const RunOptions before = *kCodec.Parse(run_.coordinator().GetStatus(0).config_bytes);
  ASSERT_TRUE(run_.admin().ExtendRun(kAnn, 50, 1, false).ok());
  EXPECT_EQ(run_.admin().ExtendRun(kAnn, 50, 1, false).status().code(), absl::StatusCode::kAborted);
  const RunOptions after = *kCodec.Parse(run_.coordinator().GetStatus(0).config_bytes);
  EXPECT_EQ(run_.coordinator().GetStatus(0).total_tokens, before.total_tokens() * 3 / 2);
  // Up to the next round it is as planned, from there on it falls more slowly.
  for (double step = 10; step <= position + 2; ++step) {
    EXPECT_DOUBLE_EQ(LearningRateAt(after, step),
                     std::max(LearningRateAt(before, step), LearningRateAt(before, position + 2)))
        << step;
  }
  for (double step = 10; step < 300; ++step) {
    EXPECT_LE(LearningRateAt(after, step + 1), LearningRateAt(after, step) * (1 + 1e-12)) << step;
  }
  // The file, which knows nothing of it, changes nothing; one that asks for more is refused.
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_EQ(run_.coordinator().GetStatus(0).config_version, 2);
  std::string other = kYaml;
  other.replace(other.find("deadline_s: 100"), 15, "deadline_s: 70 ");
  CoordinatorOptions changed = ConfiguredRun(other);
  run_.options().config_bytes = changed.config_bytes;
  run_.options().run = changed.run;
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_EQ(run_.coordinator().GetStatus(0).config_version, 3);
  EXPECT_EQ(kCodec.Parse(run_.coordinator().GetStatus(0).config_bytes)->rounds, 150u);
  EXPECT_EQ(kCodec.Parse(run_.coordinator().GetStatus(0).config_bytes)->extension.at_step, position + 2);
  ASSERT_TRUE(run_.Restart().ok()) << "and the same file again";
  EXPECT_EQ(run_.coordinator().GetStatus(0).config_version, 3);
  other.replace(other.find("rounds: 100"), 11, "rounds: 400");
  changed = ConfiguredRun(other);
  run_.options().config_bytes = changed.config_bytes;
  run_.options().run = changed.run;
  const absl::Status rejected = run_.Restart();
  EXPECT_EQ(rejected.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(rejected.message()), HasSubstr("run extend 250"));
}

TEST_F(AdminConfig, AnotherRunsFileIsToldByItsNameAndNotByItsRounds) {
  const std::vector<MemberRef> workers = run_.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  for (uint64_t base = 0; base < 5; ++base) {
    for (const MemberRef& worker : workers) ASSERT_TRUE(run_.Pull(worker).ok());
    Round(workers, base);
  }
  const auto rejection = [&](std::string_view from, std::string_view to) {
    std::string yaml = kYaml;
    yaml.replace(yaml.find("rounds: 100"), 11, "rounds: 3");
    yaml.replace(yaml.find("warmup_steps: 10"), 16, "warmup_steps: 4");
    yaml.replace(yaml.find(from), from.size(), to);
    const CoordinatorOptions changed = ConfiguredRun(yaml);
    run_.options().config_bytes = changed.config_bytes;
    run_.options().run = changed.run;
    return std::string(run_.Restart().message());
  };
  EXPECT_THAT(rejection("name: small", "name: mine"),
              AllOf(HasSubstr("that of run 'small', and the configuration is of run 'mine'"),
                    HasSubstr("--data-dir")));
  EXPECT_THAT(rejection("layers: 1", "layers: 2"), HasSubstr("model.gpt.layers is fixed when a run begins"));
  EXPECT_THAT(rejection("workers: 2", "seed: 5, workers: 2"),
              HasSubstr("run.seed is fixed when a run begins"));
  EXPECT_THAT(rejection("merge:", "privacy: {clip_norm: 2}\nmerge:"),
              HasSubstr("privacy.clip_norm is fixed"));
  run_.options() = ConfiguredRun(kYaml);
  ASSERT_TRUE(run_.Restart().ok());
}

TEST(AdminConfigWithLauncher, ALimitThatWasSetLowersTheLaunchAndARejectedStartTakesNothingBack) {
  const auto launcher = [log = std::make_shared<FakeLauncher::Log>()] {
    return std::make_unique<FakeLauncher>(log);
  };
  TestRun run(ConfiguredRun(kYaml), {.config_codec = &kCodec, .make_launcher = launcher});
  run.options().launch_workers = 4;
  ASSERT_TRUE(run.Restart().ok());
  ASSERT_TRUE(run.admin().SetConfig(kAnn, {{"limits.max_workers", "3"}}, 0, false).ok());
  ASSERT_TRUE(run.Restart().ok()) << "a supervisor repeats the flag";
  EXPECT_EQ(run.admin().WantedWorkers(), 3);
  run.options() = ConfiguredRun(kYaml + "limits: {max_workers: 2}\n");
  run.options().launch_workers = 4;
  const absl::Status rejected = run.Restart();
  EXPECT_THAT(std::string(rejected.message()), HasSubstr("limits.max_workers, which is 2"));
  run.options() = ConfiguredRun(kYaml);
  run.options().launch_workers = 4;
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_EQ(run.coordinator().GetStatus(0).config_version, 2) << "what was set is still there";
  EXPECT_EQ(run.admin().WantedWorkers(), 3);
}

TEST_F(AdminConfig, AFileEndsARunEarlierButNotInThePast) {
  const std::vector<MemberRef> workers = run_.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  for (uint64_t base = 0; base < 5; ++base) {
    for (const MemberRef& worker : workers) ASSERT_TRUE(run_.Pull(worker).ok());
    Round(workers, base);
  }
  const auto restart_with = [&](const std::string& rounds) {
    std::string yaml = kYaml;
    yaml.replace(yaml.find("rounds: 100"), 11, "rounds: " + rounds);
    yaml.replace(yaml.find("warmup_steps: 10"), 16, "warmup_steps: 4");
    const CoordinatorOptions changed = ConfiguredRun(yaml);
    run_.options().config_bytes = changed.config_bytes;
    run_.options().run = changed.run;
    return run_.Restart();
  };
  for (const char* rounds : {"3", "5"}) {
    const absl::Status rejected = restart_with(rounds);
    EXPECT_EQ(rejected.code(), absl::StatusCode::kFailedPrecondition) << rounds;
    EXPECT_THAT(std::string(rejected.message()),
                AllOf(HasSubstr("run.rounds: the file's " + std::string(rounds) + " rounds"),
                      HasSubstr("Start with at least 6 rounds"), HasSubstr("atollctl run stop")));
  }
  ASSERT_TRUE(restart_with("7").ok());
  EXPECT_EQ(run_.admin().ListConfigs()->size(), 2u) << "a refused start leaves nothing";
  const StatusView status = run_.coordinator().GetStatus(0);
  EXPECT_NE(status.state, RunState::kFinished);
  EXPECT_EQ(status.total_tokens, run_.options().run.total_tokens());
  for (uint64_t base = 5; base < 7; ++base) {
    for (const MemberRef& worker : workers) ASSERT_TRUE(run_.Pull(worker).ok());
    Round(workers, base);
  }
  EXPECT_EQ(run_.Pull(workers[0], 7)->outcome, PullOutcome::kRunFinished);
  ASSERT_TRUE(run_.Restart().ok()) << "a run that is over starts with its file";
}

TEST_F(AdminConfig, AFinishedRunIsExtendedAndGoesOn) {
  std::string brief = kYaml;
  brief.replace(brief.find("rounds: 100"), 11, "rounds: 2  ");
  brief.replace(brief.find("warmup_steps: 10"), 16, "warmup_steps: 1");
  TestRun run(ConfiguredRun(brief), {.config_codec = &kCodec});
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  const auto round = [&](uint64_t base) {
    for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
    for (const MemberRef& worker : workers) {
      ASSERT_TRUE(run.Push(worker, base, Fill([](size_t) { return 0.01F; })).ok());
    }
    ASSERT_EQ(run.Pull(workers[0], base)->snapshot->version, Version(base + 1));
  };
  round(0);
  round(1);
  EXPECT_EQ(run.Pull(workers[0], 2)->outcome, PullOutcome::kRunFinished);
  const auto extended = run.admin().ExtendRun(kAnn, 1, 0, false);
  ASSERT_TRUE(extended.ok()) << extended.status();
  EXPECT_TRUE(extended->reopened);
  EXPECT_DOUBLE_EQ(extended->rate_after, extended->rate_before);
  round(2);
  EXPECT_EQ(run.Pull(workers[0], 3)->outcome, PullOutcome::kRunFinished);
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_EQ(run.coordinator().GetStatus(0).state, RunState::kFinished);
  EXPECT_EQ(run.coordinator().GetStatus(0).fragments[0].version, Version(3));
}

TEST_F(AdminConfig, AStoppedRunTakesNoSettings) {
  ASSERT_TRUE(run_.admin().ControlRun(kAnn, RunAction::kStop, "").ok());
  EXPECT_THAT(Rejection({{"round.quorum", "0.5"}}, absl::StatusCode::kFailedPrecondition),
              HasSubstr("stopped by ann"));
}

TEST(RunConfigCodecTest, NeverTakesForeignBytes) {
  EXPECT_EQ(kCodec.Parse("\xff\xff").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(kCodec.Apply("\xff\xff", {}).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(kCodec.Diff("\xff\xff", "").status().code(), absl::StatusCode::kDataLoss);
}

TEST(WorkerCount, TheMostWorkersOfAnyRunAreThoseThatAConfigurationAllows) {
  EXPECT_EQ(RuleOf(v1::LimitsSection::descriptor()->FindFieldByName("max_workers")).max(), kMostWorkersEver);
  EXPECT_EQ(RuleOf(v1::RunSection::descriptor()->FindFieldByName("workers")).max(), kMostWorkersEver);
}

}  // namespace
}  // namespace atl

// Every command of atollctl that steers a run: what it asks for, what it shows, what it exits with.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/atollctl.h"
#include "tests/cli/fake_admin.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class AdminCommandsTest : public ::testing::Test {
 protected:
  Outcome Run(const std::vector<std::string>& arguments) { return atollctl_.Run(arguments); }

  FakeAdmin admin_;
  const Atollctl atollctl_{{"--admin", admin_.address(), "--timeout", "5"}};
};

TEST_F(AdminCommandsTest, TheListOfWorkersSaysSinceWhenItCountsBytes) {
  EXPECT_EQ(Run({"workers"}).out,
            "no worker is in the run; 'atollctl workers list --all' shows departed workers\n");
  EXPECT_EQ(Run({"workers", "list", "--all"}).out, "no worker has joined the run\n");
  v1::WorkerStatus* worker = admin_.workers.add_workers();
  worker->set_name("w0");
  worker->set_state("active");
  EXPECT_THAT(Run({"workers"}).out, HasSubstr("up, down: since the coordinator's start\n"));
  EXPECT_THAT(Run({"workers", "--help"}).out, HasSubstr("since the coordinator's start"));
}

TEST_F(AdminCommandsTest, EveryCommandToAWorkerIsTheOneThatWasTyped) {
  admin_.worker_reply.set_message("will leave after version 13");
  struct Case {
    std::vector<std::string> arguments;
    std::string asked;
  };
  const Case cases[] = {
      {{"workers", "drain", "w3"}, R"(tester worker: "w3" action: DRAIN)"},
      {{"workers", "drain", "w3", "--at-once", "--reason", "moving"},
       R"(tester worker: "w3" action: DRAIN at_once: true reason: "moving")"},
      {{"workers", "restart", "w3", "--at-once"}, R"(tester worker: "w3" action: RESTART at_once: true)"},
      {{"workers", "evict", "w3"}, R"(tester worker: "w3" action: EVICT)"},
      {{"workers", "ban", "w3"}, R"(tester worker: "w3" action: BAN)"},
      {{"workers", "unban", "w3"}, R"(tester worker: "w3" action: UNBAN)"},
      {{"--user", "alice", "workers", "resync", "w3"}, R"(alice worker: "w3" action: RESYNC)"},
  };
  for (const Case& test : cases) {
    const Outcome outcome = Run(test.arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "w3: will leave after version 13\n");
    EXPECT_THAT(admin_.calls().back(), StartsWith(test.asked));
    EXPECT_EQ(admin_.calls().back().size(), test.asked.size()) << admin_.calls().back();
  }
  EXPECT_EQ(Run({"workers", "evict", "w3", "--at-once"}).exit_code, 2) << "an eviction is always at once";
  EXPECT_EQ(Run({"workers", "drain"}).exit_code, 2);
  EXPECT_EQ(admin_.calls().size(), std::size(cases));
}

TEST_F(AdminCommandsTest, WorkersAreAddedAndScaled) {
  admin_.scale_reply.set_before(2);
  admin_.scale_reply.set_target(4);
  admin_.scale_reply.add_names("w2");
  admin_.scale_reply.add_names("w3");
  EXPECT_EQ(Run({"workers", "add", "2"}).out, "from 2 to 4 workers: w2, w3\n");
  EXPECT_EQ(Run({"workers", "scale", "4"}).exit_code, 0);
  EXPECT_EQ(Run({"workers", "scale", "0"}).exit_code, 0);
  EXPECT_THAT(admin_.calls(), ElementsAre("tester add: 2", "tester ", "tester target: 4", "tester ",
                                          "tester target: 0", "tester "));
  EXPECT_EQ(Run({"workers", "add", "0"}).exit_code, 2);
  admin_.status.mutable_config()->mutable_run()->set_workers(5);
  admin_.status.set_state(v1::RUN_STATE_STARTING);
  EXPECT_THAT(
      Run({"workers", "scale", "4"}).out,
      HasSubstr("its start waits for 5 workers (run.workers), and 'atollctl status' shows how long; give "
                "'atollctl workers scale 5'"));
  admin_.status.add_fragments()->set_version(7);
  EXPECT_THAT(Run({"workers", "scale", "4"}).out, Not(HasSubstr("run.workers"))) << "a branch or a restart";
  admin_.status.clear_fragments();
  admin_.status.set_state(v1::RUN_STATE_TRAINING);
  EXPECT_THAT(Run({"workers", "scale", "4"}).out, Not(HasSubstr("run.workers")));
}

TEST_F(AdminCommandsTest, NumbersAndOptionsThatMeanNothingAreRejected) {
  const std::vector<std::string> negative[] = {{"events", "--after", "-1"},
                                               {"events", "--after=-18446744073709551615"},
                                               {"verify", "--version", "-1"},
                                               {"config", "set", "--expect", "-1", "a.b=1"}};
  for (const std::vector<std::string>& arguments : negative) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments[0];
    EXPECT_THAT(outcome.err, HasSubstr("is negative")) << arguments[0];
  }
  for (const char* option : {"--fragment", "--file", "--export", "--peer-keys"}) {
    const Outcome outcome = Run({"verify", option, "1"});
    EXPECT_EQ(outcome.exit_code, 2) << option;
    EXPECT_THAT(outcome.err, HasSubstr("--confirmations")) << option;
  }
  const Outcome forget = Run({"workers", "forget", "--older-than", "7"});
  EXPECT_EQ(forget.exit_code, 2);
  EXPECT_THAT(forget.err, HasSubstr("for example 7d"));
  EXPECT_THAT(admin_.calls(), IsEmpty());
}

TEST_F(AdminCommandsTest, AWorkerIsDescribed) {
  auto* worker = admin_.workers.add_workers();
  worker->set_name("w3");
  worker->set_state("active");
  worker->set_banned(true);
  worker->set_inner_steps(48);
  worker->set_steps_per_second(3.25);
  worker->set_confirmed_version(12);
  worker->set_pending_command(v1::COMMAND_DRAIN);
  worker->mutable_progress()->set_waiting_for("the next version\x1b[2J");
  const auto spent = [](auto* times, v1::TimeUse use, double seconds) {
    v1::TimeSpent& one = *times->Add();
    one.set_use(use);
    one.set_seconds(seconds);
  };
  spent(worker->mutable_progress()->mutable_training_time(), v1::TIME_USE_OVERDUE, 30);
  spent(worker->mutable_progress()->mutable_training_time(), v1::TIME_USE_COMPUTE, 60);
  spent(worker->mutable_progress()->mutable_training_time(), v1::TIME_USE_OTHER, 10);
  spent(worker->mutable_progress()->mutable_exchange_time(), v1::TIME_USE_PUSH, 20);
  const Outcome outcome = Run({"workers", "describe", "w3"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("active, banned"), HasSubstr("steps per round      48"),
                                 HasSubstr("3.25 inner steps/s"), HasSubstr("confirmed version    12"),
                                 HasSubstr("pending command      drain"), Not(HasSubstr("\x1b")),
                                 HasSubstr("compute 60 %, overdue 30 %, other 10 % of 1m 40s"),
                                 HasSubstr("exchange threads     push 100 % of 20"),
                                 HasSubstr("loss                 not known")));
  EXPECT_THAT(admin_.calls(), ElementsAre(R"(tester all: true worker: "w3")"));
  const auto json = nlohmann::json::parse(Run({"workers", "describe", "w3", "--json"}).out);
  EXPECT_EQ(json["inner_steps"], 48);
  EXPECT_FALSE(json["progress"].contains("loss")) << "not known, rather than 0";
  EXPECT_EQ(json["progress"]["learning_rate"], 0);
  EXPECT_EQ(Run({"workers", "describe", "w4"}).exit_code, 5);
  EXPECT_THAT(Run({"workers"}).out, AllOf(HasSubstr("banned"), HasSubstr("told to drain")));
}

TEST_F(AdminCommandsTest, TheRunIsSteered) {
  admin_.run_reply.set_state(v1::RUN_STATE_PAUSED);
  admin_.run_reply.set_message("workers wait after their round");
  EXPECT_EQ(Run({"run", "pause", "--reason", "power"}).out, "paused: workers wait after their round\n");
  EXPECT_EQ(nlohmann::json::parse(Run({"--json", "run", "resume"}).out)["state"], "RUN_STATE_PAUSED");
  EXPECT_EQ(Run({"run", "close-round"}).exit_code, 0);
  EXPECT_EQ(Run({"run", "stop", "--yes"}).exit_code, 0);
  EXPECT_THAT(admin_.calls(), ElementsAre(R"(tester action: PAUSE reason: "power")", "tester action: RESUME",
                                          "tester action: CLOSE_ROUND", "tester action: STOP"));
  EXPECT_EQ(Run({"run", "status"}).exit_code, 0);
}

TEST_F(AdminCommandsTest, TheStatusListsItsLastRounds) {
  EXPECT_THAT(Run({"status", "--history", "2"}).out, HasSubstr("no round has closed yet\n"));
  for (uint64_t version = 810; version <= 813; ++version) {
    v1::RoundSummary* round = admin_.status.add_rounds();
    round->set_version(version);
    round->set_contributions(version == 813 ? 0 : 3);
    round->set_train_loss(version == 813 ? 0 : 2.5);
    round->set_closed_unix_nanos(version == 813 ? 0 : 1'700'000'000'000'000'000);
  }
  v1::EvaluationReport* evaluation = admin_.status.add_evaluations();
  evaluation->set_version(812);
  evaluation->set_loss(2.75);
  const std::string out = Run({"status", "--history", "2"}).out;
  EXPECT_THAT(out, ContainsRegex("\n +version +closed +contributions +train loss +validation loss\n"
                                 " +812 +2023-11-1[0-9: -]+ +3 +2.500 +2.750\n"
                                 " +813 +- +0 +- +-\n$"));
  EXPECT_EQ(admin_.calls().back(), "tester history: 2");
  EXPECT_THAT(Run({"status"}).out, Not(HasSubstr("contributions"))) << "only where it is asked for";
  admin_.status.add_fragments();
  admin_.status.add_fragments();
  admin_.status.mutable_rounds(3)->set_fragment(1);
  EXPECT_THAT(Run({"run", "status", "--history", "1"}).out,
              ContainsRegex("\n +fragment +version .*\n +1 +813 .* -\n$"));
}

TEST_F(AdminCommandsTest, AnExtensionOfAFinishedRunSaysThatItsWorkersAreGone) {
  admin_.extend_reply.set_reopened(true);
  EXPECT_THAT(Run({"run", "extend", "50", "--yes"}).out, HasSubstr("start them again"));
}

TEST_F(AdminCommandsTest, AnExtensionIsShownBeforeItIsDone) {
  v1::ExtendRunReply& reply = admin_.extend_reply;
  reply.set_config_version(4);
  reply.set_rounds_before(100);
  reply.set_rounds_after(150);
  reply.set_total_steps_before(2000);
  reply.set_total_steps_after(3000);
  reply.set_position_steps(1200);
  reply.set_learning_rate_before(0.00052);
  reply.set_learning_rate_after(0.00052);
  reply.set_final_learning_rate(0.0001);
  const Outcome shown = Run({"run", "extend", "50", "--dry-run"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(
      shown.out,
      AllOf(HasSubstr("100 -> 150 (2000 -> 3000 inner steps; the run is at step 1200)"),
            HasSubstr("0.00052, which the extension does not change; it decays to 0.0001 at step 3000"),
            HasSubstr("ends when the tokens of these rounds are trained")));
  reply.set_learning_rate_before(0.0001);
  reply.set_learning_rate_after(0.0001);
  EXPECT_THAT(Run({"run", "extend", "50", "--dry-run"}).out,
              HasSubstr("learning rate    0.0001 from now to the end, at step 3000\n"));
  reply.set_learning_rate_before(0.00052);
  EXPECT_THAT(Run({"run", "extend", "50", "--dry-run"}).out,
              HasSubstr("0.00052 now, 0.0001 after the extension and to the end, at step 3000\n"));
  const Outcome unasked = Run({"run", "extend", "50"});
  EXPECT_EQ(unasked.exit_code, 2);
  EXPECT_THAT(unasked.err, HasSubstr("--yes"));
  EXPECT_THAT(Run({"run", "extend", "50", "--yes"}).out, HasSubstr("configuration version 4"));
  EXPECT_THAT(admin_.calls(),
              ElementsAre("tester rounds: 50 dry_run: true", "tester rounds: 50 dry_run: true",
                          "tester rounds: 50 dry_run: true", "tester rounds: 50 dry_run: true",
                          "tester rounds: 50 dry_run: true", "tester rounds: 50 expected_version: 4"));
  EXPECT_EQ(Run({"run", "extend", "0"}).exit_code, 2);
  EXPECT_THAT(shown.out, Not(HasSubstr("start them again"))) << "workers of a run that goes on are there";
  EXPECT_EQ(Run({"run", "reset-data", "--reason", "wrong files"}).exit_code, 0);
  EXPECT_EQ(admin_.calls().back(), R"(tester action: RESET_DATASET reason: "wrong files")");
}

TEST_F(AdminCommandsTest, WhatCannotBeTakenBackIsNotDoneUnasked) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"run", "stop"},
                                                    {"checkpoint", "restore", "c1"},
                                                    {"checkpoint", "delete", "c1"}}) {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("--yes"));
  }
  EXPECT_THAT(admin_.calls(), IsEmpty());
}

TEST_F(AdminCommandsTest, ConfigurationIsSetAndListed) {
  auto* config = admin_.set_reply.mutable_config();
  config->set_version(3);
  config->add_changes("round.deadline_s: 600 -> 120");
  *admin_.configs.add_configs() = *config;
  admin_.configs.mutable_configs(0)->set_author("alice");
  EXPECT_THAT(Run({"config", "set", "round.deadline_s=120", "run.name=a=b"}).out,
              AllOf(HasSubstr("configuration 3, in force"), HasSubstr("   round.deadline_s: 600 -> 120\n")));
  EXPECT_THAT(Run({"config", "set", "--dry-run", "--expect", "2", "outer.learning_rate=0.5"}).out,
              HasSubstr("nothing was changed"));
  EXPECT_THAT(admin_.calls(), ElementsAre(R"(tester settings { path: "round.deadline_s" value: "120" } )"
                                          R"(settings { path: "run.name" value: "a=b" })",
                                          R"(tester settings { path: "outer.learning_rate" value: "0.5" } )"
                                          "expected_version: 2 dry_run: true"));
  EXPECT_EQ(Run({"config", "set", "round.deadline_s"}).exit_code, 2);
  EXPECT_THAT(Run({"config", "history"}).out, AllOf(HasSubstr("alice"), Not(HasSubstr("600"))));
  EXPECT_THAT(Run({"config", "history", "--diff"}).out, HasSubstr("round.deadline_s: 600 -> 120"));
}

TEST_F(AdminCommandsTest, CheckpointsAreMadeListedRestoredDeleted) {
  auto* made = admin_.created.mutable_checkpoint();
  made->set_name("c1");
  made->add_versions(12);
  made->set_bytes(3 << 20);
  made->set_path("run1/checkpoints/c1");
  EXPECT_THAT(Run({"checkpoint", "create", "c1"}).out, HasSubstr("made c1: version 12, 3.0 MiB"));
  *admin_.checkpoints.add_checkpoints() = *made;
  EXPECT_THAT(Run({"checkpoint", "list"}).out, AllOf(HasSubstr("c1"), HasSubstr("by hand")));
  EXPECT_THAT(Run({"checkpoint", "list", "--check"}).out, HasSubstr("whole"));
  admin_.checkpoints.mutable_checkpoints(0)->set_damage("shards/00/000012.sst: wrong checksum");
  const Outcome damaged = Run({"checkpoint", "list", "--check"});
  EXPECT_EQ(damaged.exit_code, 4);
  EXPECT_THAT(damaged.out, HasSubstr("DAMAGED: shards/00/000012.sst"));
  admin_.status.set_state(v1::RUN_STATE_DEGRADED);
  admin_.restored.set_epoch(0xabcd);
  admin_.restored.add_versions(31);
  EXPECT_THAT(Run({"checkpoint", "restore", "c1", "--yes"}).out,
              AllOf(HasSubstr("as version 31 in epoch 000000000000abcd"),
                    HasSubstr("\nno worker is in the run: start your workers again"),
                    HasSubstr("until they join, the run is 'degraded'\n")));
  admin_.status.set_live_trainers(1);
  EXPECT_THAT(Run({"checkpoint", "restore", "c1", "--yes"}).out, Not(HasSubstr("no worker")));
  EXPECT_EQ(Run({"checkpoint", "delete", "c1", "--yes"}).exit_code, 0);
  EXPECT_THAT(admin_.calls(), ElementsAre(R"(tester name: "c1")", "tester ", "tester check: true",
                                          "tester check: true", R"(tester name: "c1")", "tester ",
                                          R"(tester name: "c1")", "tester ", R"(tester name: "c1")"));
}

v1::VerifyProgress Verdict(uint64_t version, v1::VerifyProgress::Verdict verdict, uint32_t done) {
  v1::VerifyProgress progress;
  progress.set_version(version);
  progress.set_verdict(verdict);
  progress.set_done(done);
  progress.set_total(2);
  return progress;
}

TEST_F(AdminCommandsTest, VerifyTellsADifferenceByItsExitCode) {
  admin_.verdicts = {Verdict(11, v1::VerifyProgress::NOT_KEPT, 1), Verdict(12, v1::VerifyProgress::EQUAL, 2)};
  admin_.verdicts[1].add_confirmed_by("w0");
  const Outcome equal = Run({"verify"});
  EXPECT_EQ(equal.exit_code, 0) << equal.err;
  EXPECT_THAT(equal.out,
              AllOf(HasSubstr("not kept"), HasSubstr("w0"), HasSubstr("1 recomputed, every bit equal")));
  admin_.verdicts.push_back(Verdict(13, v1::VerifyProgress::EQUAL, 3));
  admin_.verdicts[2].set_message("restored from checkpoint 'c1'; what is stored is what was committed");
  EXPECT_THAT(
      Run({"verify"}).out,
      HasSubstr("1 recomputed, every bit equal; 1 not made by a round, such as a restored version: only "
                "compared with the stored bytes, every bit equal"));
  admin_.verdicts.pop_back();
  admin_.verdicts[1].set_verdict(v1::VerifyProgress::DIFFERENT);
  const Outcome different = Run({"verify", "--json"});
  EXPECT_EQ(different.exit_code, 4);
  EXPECT_THAT(different.err, HasSubstr("version 12 of fragment 0"));
  EXPECT_EQ(nlohmann::json::parse(different.out.substr(0, different.out.find('\n')))["verdict"], "NOT_KEPT");
  admin_.verdicts.pop_back();
  EXPECT_EQ(Run({"verify", "--version", "11"}).exit_code, 5) << "asked for, and cannot be had";
  EXPECT_EQ(admin_.calls().back(), "tester version: 11");
}

TEST_F(AdminCommandsTest, TheLauncherIsShown) {
  EXPECT_THAT(Run({"launcher"}).out, HasSubstr("no launcher"));
  admin_.launcher.set_kind("process");
  admin_.launcher.set_target(2);
  admin_.launcher.set_error("exec atoll-worker: no such file; next attempt in 4 s");
  auto* worker = admin_.launcher.add_workers();
  worker->set_name("w0");
  worker->set_state("waiting");
  worker->set_next_start_in_s(3.2);
  worker->set_restarts(7);
  worker->set_last_exit("exit code 4");
  EXPECT_THAT(Run({"launcher"}).out,
              AllOf(HasSubstr("process launcher, 2 workers wanted"), HasSubstr("error: exec"),
                    HasSubstr("waiting 4.0 s"), HasSubstr("exit code 4")));
}

TEST_F(AdminCommandsTest, MetricsAreShownAndExported) {
  admin_.metrics.set_validation_loss(2.5);
  admin_.metrics.set_compute_utilisation(0.973);
  admin_.metrics.set_committed_tokens(520000);
  admin_.metrics.set_total_tokens(461000);
  EXPECT_THAT(Run({"metrics"}).out,
              AllOf(HasSubstr("2.5000"), HasSubstr("97.3 %"), HasSubstr("520k (461k planned)")));
  const auto metrics = nlohmann::json::parse(Run({"metrics", "--json"}).out);
  EXPECT_EQ(metrics["validation_loss"], 2.5);
  EXPECT_FALSE(metrics.contains("train_loss")) << "not known, rather than 0";
  EXPECT_EQ(metrics["push_bytes"], "0");
  admin_.points.resize(2);
  admin_.points[0].set_name("train/loss");
  admin_.points[0].set_value(0.1);
  admin_.points[0].set_unix_nanos(1'700'000'000'000'000'001);
  admin_.points[1].set_name("worker/norm");
  admin_.points[1].set_worker("w0");
  EXPECT_THAT(Run({"metrics", "export"}).out,
              HasSubstr("\n1700000000.000000001,train/loss,,0,0,0.10000000000000001\n"));
  TestDir dir;
  EXPECT_EQ(Run({"metrics", "export", "--format", "jsonl", "--out", dir.File("m.jsonl")}).out,
            "wrote 2 points to " + dir.File("m.jsonl") + "\n");
  EXPECT_THAT(ReadFile(dir.File("m.jsonl")).value_or(""), HasSubstr(R"("worker":"w0")"));
  EXPECT_EQ(Run({"metrics", "export", "--format", "tensorboard"}).exit_code, 2);
}

TEST_F(AdminCommandsTest, ARejectionIsTheCoordinatorsAndKeepsItsWords) {
  admin_.rejection = absl::NotFoundError("no worker 'w9' was ever seen");
  const Outcome unknown = Run({"workers", "drain", "w9"});
  EXPECT_EQ(unknown.exit_code, 5);
  EXPECT_EQ(unknown.err, "atollctl: no worker 'w9' was ever seen\n");
  admin_.rejection = absl::FailedPreconditionError("the run is not paused");
  EXPECT_EQ(Run({"run", "resume"}).exit_code, 5);
  admin_.rejection = absl::AbortedError("version 4 is in force");
  EXPECT_EQ(Run({"config", "set", "--expect", "3", "a.b=1"}).exit_code, 5);
  admin_.rejection = absl::InvalidArgumentError("round.quorum: 2 is out of range");
  EXPECT_EQ(Run({"config", "set", "round.quorum=2"}).exit_code, 2);
  admin_.rejection = absl::DataLossError("shards/00/000012.sst is damaged");
  EXPECT_EQ(Run({"checkpoint", "restore", "c1", "--yes"}).exit_code, 4);
  admin_.rejection = absl::UnimplementedError("");
  EXPECT_THAT(Run({"metrics"}).err,
              AllOf(HasSubstr("older than this atollctl"),
                    HasSubstr("goes to its admin port (--admin): either this is its data port")));
}

TEST(Unreachable, IsExitCodeThreeAndSoon) {
  const Outcome outcome = Atollctl({"--admin", "127.0.0.1:1", "--timeout", "0.3"}).Run({"status"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("no coordinator answers on 127.0.0.1:1"));
  EXPECT_EQ(Atollctl({"--admin", "nonsense"}).Run({"status"}).exit_code, 2);
}

TEST(Completion, KnowsTheCommands) {
  const Outcome outcome = Atollctl().Run({"completion", "bash"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("'workers drain') words='"), HasSubstr("--at-once"),
                                 HasSubstr("complete -o default -F _atollctl atollctl")));
}

}  // namespace
}  // namespace atl

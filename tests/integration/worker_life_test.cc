// Two real workers that are asked to leave, restarted by order, paused and killed: the run goes on, and so do
// they.

#include <signal.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/cluster.h"
#include "tests/paths.h"

namespace atl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Rounds of a good part of a second, int8 so that there is a residual to keep.
TinyRun Slow(uint32_t rounds) {
  TinyRun run;
  run.rounds = rounds;
  run.inner_steps = 100;
  run.outer = "{optimizer: nesterov, learning_rate: 0.9, momentum: 0.5}";
  run.codec = "{push: int8, pull_delta: none}";
  return run;
}

class WorkerLifeTest : public ::testing::Test {
 protected:
  void Begin(uint32_t rounds, uint32_t inner_steps = 100) {
    TinyRun run = Slow(rounds);
    run.inner_steps = inner_steps;
    auto made = Cluster::Create(TinyConfig(run));
    ASSERT_TRUE(made.ok()) << made.status();
    cluster_ = *std::move(made);
    ASSERT_TRUE(cluster_->StartCoordinator().ok());
    ASSERT_TRUE(cluster_->StartWorker("w0").ok());
    ASSERT_TRUE(cluster_->StartWorker("w1").ok());
    const absl::Status going = cluster_->WaitForVersion(2, Seconds(90));
    ASSERT_TRUE(going.ok()) << going;
  }

  /// `atollctl --admin ADDRESS ARGUMENTS...`
  void Control(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(),
                     {std::string(ATOLL_BIN_DIR) + "/atollctl", "--admin", cluster_->admin_address()});
    const Finished finished = RunToEnd(arguments, Seconds(20));
    ASSERT_EQ(finished.exit_code, 0) << finished.output;
  }

  v1::WorkerStatus Worker(const std::string& name) {
    const auto workers = cluster_->Workers();
    if (workers.ok()) {
      for (const v1::WorkerStatus& worker : workers->workers()) {
        if (worker.name() == name) return worker;
      }
    }
    return {};
  }

  absl::Status WaitForLog(const std::string& worker, const std::string& text) {
    return cluster_->WaitUntil(worker + " to say '" + text + "'", Seconds(60), [&](const auto&) {
      return cluster_->Log(worker).find(text) != std::string::npos;
    });
  }

  void Finish() {
    const absl::Status finished = cluster_->WaitForFinish(Seconds(150));
    ASSERT_TRUE(finished.ok()) << finished;
    EXPECT_THAT(cluster_->Log("coordinator"),
                Not(HasSubstr("trained on other parameters than were published")));
  }

  std::unique_ptr<Cluster> cluster_;
};

TEST_F(WorkerLifeTest, ARejectedNameDoesNotOccupyTheStateDirectory) {
  Begin(12);
  const auto start = [&](const std::string& name, const std::string& log) {
    auto started =
        Process::Start({ATOLL_BIN_DIR "/atoll-worker", "--coordinator", cluster_->data_address(), "--name",
                        name, "--role", "evaluator", "--data", cluster_->PathOf("tokens"), "--state-dir",
                        cluster_->PathOf("state"), "--threads", "1", "--device", "cpu"},
                       cluster_->PathOf(log + ".log"));
    EXPECT_TRUE(started.ok()) << started.status();
    return *std::move(started);
  };
  EXPECT_EQ(start("w1", "mistyped")->Wait(Seconds(60)), 5) << cluster_->Log("mistyped");
  const auto w2 = start("w2", "right");
  // The coordinator knows it a moment before its identity is on disk.
  const absl::Status joined = WaitForLog("right", "joined the run");
  ASSERT_TRUE(joined.ok()) << joined;
  w2->Kill();
  EXPECT_EQ(start("w3", "other")->Wait(Seconds(60)), 2) << cluster_->Log("other");
  EXPECT_THAT(cluster_->Log("other"), HasSubstr("belongs to worker 'w2', not to 'w3'"));
}

TEST_F(WorkerLifeTest, AKilledWorkerGoesOnWithWhatItKept) {
  Begin(12);
  cluster_->worker("w1").Kill();
  ASSERT_TRUE(cluster_->StartWorker("w1").ok());
  const absl::Status back = WaitForLog("w1", "goes on with the state it kept");
  ASSERT_TRUE(back.ok()) << back;
  Finish();
  EXPECT_EQ(cluster_->worker("w1").Wait(Seconds(20)), 0) << cluster_->Log("w1");
  EXPECT_THAT(cluster_->Log("w1"), Not(HasSubstr("warming up its learning rate")));
  EXPECT_GE(Worker("w0").confirmed_version(), 10u) << "signed and checked";
  EXPECT_GE(Worker("w1").confirmed_version(), 8u);
}

TEST_F(WorkerLifeTest, OnSigtermItPushesWhatIsDoneAndLeaves) {
  Begin(4, 1500);  // rounds of some seconds: heartbeats tell of their middle
  const absl::Status training = cluster_->WaitUntil("w1 in mid-round", Seconds(60), [&](const auto&) {
    const v1::Progress progress = Worker("w1").progress();
    return progress.phase() == v1::WORKER_PHASE_TRAINING && progress.step() >= 3 && progress.step() < 1000;
  });
  ASSERT_TRUE(training.ok()) << training;
  cluster_->worker("w1").Signal(SIGTERM);
  EXPECT_EQ(cluster_->worker("w1").Wait(Seconds(20)), 0) << cluster_->Log("w1");
  EXPECT_THAT(cluster_->Log("w1"), HasSubstr("left the run"));
  Finish();
}

TEST_F(WorkerLifeTest, ACommandToRestartReplacesTheProcess) {
  Begin(14);
  const pid_t before = cluster_->worker("w1").pid();
  const uint64_t incarnation = Worker("w1").incarnation();
  Control({"workers", "restart", "w1", "--at-once"});
  const absl::Status restarted = WaitForLog("w1", "restarting");
  ASSERT_TRUE(restarted.ok()) << restarted;
  const absl::Status back = WaitForLog("w1", "goes on with the state it kept");
  ASSERT_TRUE(back.ok()) << back;
  EXPECT_TRUE(cluster_->worker("w1").running());
  EXPECT_EQ(cluster_->worker("w1").pid(), before) << "the same process, another life";
  const absl::Status joined = cluster_->WaitUntil(
      "its next life", Seconds(60), [&](const auto&) { return Worker("w1").incarnation() > incarnation; });
  EXPECT_TRUE(joined.ok()) << joined;
  Finish();
  EXPECT_EQ(cluster_->worker("w1").Wait(Seconds(20)), 0) << cluster_->Log("w1");
}

TEST_F(WorkerLifeTest, APausedRunIsWaitedForAndAStoppedOneLeft) {
  Begin(1000);
  Control({"run", "pause"});
  const absl::Status paused = cluster_->WaitUntil("the workers to wait", Seconds(60), [&](const auto&) {
    return !Worker("w0").progress().waiting_for().empty() && !Worker("w1").progress().waiting_for().empty();
  });
  ASSERT_TRUE(paused.ok()) << paused;
  const uint64_t head = cluster_->Status()->fragments(0).version();
  Control({"run", "resume"});
  const absl::Status resumed = cluster_->WaitForVersion(head + 2, Seconds(60));
  ASSERT_TRUE(resumed.ok()) << resumed;
  Control({"run", "stop", "--yes"});
  EXPECT_EQ(cluster_->worker("w0").Wait(Seconds(60)), 0) << cluster_->Log("w0");
  EXPECT_EQ(cluster_->worker("w1").Wait(Seconds(60)), 0) << cluster_->Log("w1");
}

}  // namespace
}  // namespace atl

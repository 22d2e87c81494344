// The process launcher with real processes: small shell scripts in the place of workers. The script finds
// "--coordinator ADDRESS --name NAME --state-dir DIR" in $1 to $6.
#include "server/launch/process_launcher.h"

#include <signal.h>

#include <algorithm>

#include "common/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/test_dir.h"
#include "tests/launch/wait_until.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using State = LaunchedWorker::State;

constexpr char kSleeps[] = "echo $4 runs; exec sleep 600";

class ProcessLauncherTest : public ::testing::Test {
 protected:
  ~ProcessLauncherTest() override { launcher_.reset(); }

  ProcessLauncherOptions Options(const std::string& script) const {
    ProcessLauncherOptions options;
    options.command.program = "sh";
    options.command.arguments = {"-c", script, "sh"};
    options.command.state_root = dir_.File("state");
    options.log_dir = dir_.File("logs");
    options.grace = Seconds(20);
    options.settled = Seconds(600);
    options.backoff = {.initial = Seconds(0.001), .maximum = Seconds(0.02), .multiplier = 2};
    return options;
  }

  void Make(const ProcessLauncherOptions& options) {
    auto launcher = ProcessLauncher::Create(options, &clock_);
    ASSERT_TRUE(launcher.ok()) << launcher.status();
    launcher_ = *std::move(launcher);
    launcher_->SetEventSink([this](const Launcher::Event& event) {
      MutexLock lock(&mutex_);
      events_.push_back((event.launched ? "+" : "-") + event.message);
    });
  }
  void Launch(const ProcessLauncherOptions& options, uint32_t count) {
    Make(options);
    launcher_->SetCoordinator("127.0.0.1:7600");
    ASSERT_TRUE(launcher_->Scale(count).ok());
  }

  std::vector<std::string> Events() {
    MutexLock lock(&mutex_);
    return events_;
  }
  /// Events follow the view: wait for one that begins like this ("+": started, "-": ended) and has this in
  /// it.
  bool HasEvent(const std::string& beginning, const std::string& text = "") {
    return WaitUntil([&] {
      const auto events = Events();
      return std::any_of(events.begin(), events.end(), [&](const std::string& event) {
        return event.starts_with(beginning) && event.find(text) != std::string::npos;
      });
    });
  }
  std::vector<LaunchedWorker> Workers() const { return launcher_->view().workers; }
  bool AllAre(State state, size_t count) const {
    size_t there = 0;
    for (const LaunchedWorker& worker : Workers()) there += worker.state == state ? 1 : 0;
    return there == count && Workers().size() == count;
  }
  /// A process can write to its log before the launcher's view shows it.
  pid_t PidOf(size_t index) const {
    EXPECT_TRUE(WaitUntil([&] { return Workers().size() > index && !Workers()[index].handle.empty(); }));
    return std::stoi(Workers().at(index).handle);
  }
  std::string LogOf(const std::string& name) const {
    return ReadFile(dir_.File("logs/" + name + ".log")).value_or("");
  }
  bool Logged(const std::string& name, const std::string& text) const {
    return WaitUntil([&] { return LogOf(name).find(text) != std::string::npos; });
  }

  TestDir dir_;
  SystemClock clock_;
  Mutex mutex_;
  std::vector<std::string> events_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<ProcessLauncher> launcher_;
};

TEST_F(ProcessLauncherTest, StartsWhatIsAskedForOnceTheCoordinatorIsKnown) {
  Make(Options("echo \"$@\"; exec sleep 600"));
  ASSERT_TRUE(launcher_->Scale(2).ok());
  EXPECT_TRUE(AllAre(State::kStarting, 2));  // at once: who scaled is told the names
  EXPECT_THAT(Events(), IsEmpty());
  launcher_->SetCoordinator("127.0.0.1:7600");
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 2); }));
  const LauncherView view = launcher_->view();
  EXPECT_EQ(view.kind, "process");
  EXPECT_EQ(view.target, 2u);
  EXPECT_EQ(view.error, "");
  EXPECT_EQ(view.workers[1].name, "w1");
  EXPECT_EQ(view.workers[1].restarts, 0u);
  EXPECT_TRUE(Logged("w1", "--coordinator 127.0.0.1:7600 --name w1 --state-dir " + dir_.File("state/w1")));
  EXPECT_TRUE(WaitUntil([&] { return Events().size() == 2; }));
  EXPECT_THAT(Events()[0], AllOf(HasSubstr("+w0 started (process "), HasSubstr("w0.log")));
}

TEST_F(ProcessLauncherTest, OneThatIsKilledComesBackUnderItsName) {
  Launch(Options(kSleeps), 2);
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 2); }));
  ASSERT_TRUE(Logged("w1", "runs"));
  const pid_t first = PidOf(1);
  ::kill(first, SIGKILL);
  ASSERT_TRUE(WaitUntil([&] { return Workers().at(1).restarts == 1 && AllAre(State::kRunning, 2); }));
  EXPECT_NE(PidOf(1), first);
  EXPECT_THAT(Workers()[1].last_exit, HasSubstr("killed by SIGKILL after "));
  EXPECT_EQ(Workers()[0].restarts, 0u);
  EXPECT_EQ(launcher_->view().error, "");
  EXPECT_TRUE(HasEvent("-w1 ended: killed by SIGKILL after "));
  // Both lives wrote to one log.
  EXPECT_TRUE(Logged("w1", "w1 runs\nw1 runs\n"));
}

TEST_F(ProcessLauncherTest, OneThatHasNothingMoreToDoStaysAwayUntilItIsWanted) {
  Launch(Options("echo $4 runs; exit 0"), 1);
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kStopped, 1); }));
  EXPECT_THAT(Workers()[0].last_exit, HasSubstr("exit code 0"));
  EXPECT_EQ(launcher_->view().error, "");
  EXPECT_TRUE(HasEvent("-w0 finished", "not started again"));
  ASSERT_TRUE(launcher_->Restart("w0").ok());
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kStopped, 1) && Workers()[0].restarts == 1; }));
  ASSERT_TRUE(launcher_->Scale(1).ok());
  EXPECT_TRUE(Logged("w0", "w0 runs\nw0 runs\nw0 runs\n"));
}

TEST_F(ProcessLauncherTest, OneThatStillDrainsDoesNotCountForAScale) {
  Launch(Options(kSleeps), 2);
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 2); }));
  ASSERT_TRUE(launcher_->Release("w1").ok());
  ASSERT_TRUE(WaitUntil([&] { return Workers().at(1).state == State::kDraining; }));
  ASSERT_TRUE(launcher_->Scale(2).ok());
  ASSERT_TRUE(WaitUntil([&] { return Workers().size() == 3 && Workers().at(2).state == State::kRunning; }));
  const LauncherView view = launcher_->view();
  EXPECT_EQ(view.target, 2u);
  EXPECT_THAT(view.wanted, ::testing::ElementsAre("w0", "w2"));
  EXPECT_THAT(view.drained, ::testing::ElementsAre("w1"));
  EXPECT_EQ(view.workers[1].state, State::kDraining) << "it is left to finish its round";
}

TEST_F(ProcessLauncherTest, OneThatIsDrainedIsNotWantedAndNotStartedAgain) {
  Launch(Options("test $4 = w1 && sleep 1 && exit 3; exec sleep 600"), 2);
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 2); }));
  const auto note = launcher_->Release("w1");
  ASSERT_TRUE(note.ok()) << note.status();
  EXPECT_THAT(*note, HasSubstr("workers restart w1"));
  EXPECT_EQ(launcher_->view().target, 1u);
  // Whatever it ends with.
  ASSERT_TRUE(WaitUntil([&] { return Workers().at(1).state == State::kDrained; }));
  EXPECT_TRUE(HasEvent("-w1 was drained: exit code 3"));
  // One more is one more.
  ASSERT_TRUE(launcher_->Scale(2).ok());
  ASSERT_TRUE(WaitUntil([&] { return Workers().size() == 3 && Workers().at(2).state == State::kRunning; }));
  EXPECT_EQ(Workers()[1].state, State::kDrained);
  EXPECT_EQ(Workers()[2].name, "w2");
  EXPECT_THAT(launcher_->view().drained, ::testing::ElementsAre("w1"));
  ASSERT_TRUE(launcher_->Scale(2).ok());
  EXPECT_EQ(launcher_->view().target, 2u);
  // Only a restart brings it back, and then it is wanted again.
  ASSERT_TRUE(launcher_->Restart("w1").ok());
  EXPECT_EQ(launcher_->view().target, 3u);
  EXPECT_THAT(launcher_->view().drained, IsEmpty());
  EXPECT_TRUE(WaitUntil([&] { return Workers().at(1).restarts >= 1; }));
}

TEST_F(ProcessLauncherTest, OneThatIsDrainingAndWantedAgainIsKeptRunning) {
  Launch(Options(kSleeps), 2);
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 2); }));
  const pid_t first = PidOf(1);
  EXPECT_FALSE(launcher_->IsReleased("w1"));
  ASSERT_TRUE(launcher_->Release("w1").ok());
  EXPECT_TRUE(launcher_->IsReleased("w1"));
  ASSERT_TRUE(WaitUntil([&] { return Workers().at(1).state == State::kDraining; }));
  launcher_->Reclaim("w1");
  launcher_->Reclaim("w7");
  launcher_->Reclaim("someone");
  EXPECT_FALSE(launcher_->IsReleased("w1"));
  EXPECT_EQ(launcher_->view().target, 2u);
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 2); }));
  EXPECT_EQ(PidOf(1), first) << "its process is left alone";
  ::kill(first, SIGKILL);
  EXPECT_TRUE(WaitUntil([&] { return Workers().at(1).restarts == 1 && AllAre(State::kRunning, 2); }));
}

TEST_F(ProcessLauncherTest, OneThatIsWantedAgainWhileItDrainsIsStartedWhenItHasEnded) {
  const std::string go = dir_.File("go");
  Launch(Options("echo $4 runs; while ! test -e " + go + "; do sleep 0.01; done; rm " + go), 1);
  ASSERT_TRUE(Logged("w0", "runs"));
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 1); }));
  ASSERT_TRUE(launcher_->Release("w0").ok());
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kDraining, 1); }));
  launcher_->Reclaim("w0");
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 1); }));
  // It had begun to leave, and does.
  ASSERT_TRUE(WriteFileAtomically(go, "").ok());
  EXPECT_TRUE(HasEvent("-w0 was drained", "the run needs it again"));
  EXPECT_TRUE(Logged("w0", "w0 runs\nw0 runs\n"));
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 1); }));
  // Once: after that it ends when there is nothing more to do.
  ASSERT_TRUE(WriteFileAtomically(go, "").ok());
  EXPECT_TRUE(WaitUntil([&] { return AllAre(State::kStopped, 1); }));
}

TEST_F(ProcessLauncherTest, OneThatHasDrainedIsStartedAtOnceWhenItIsWantedAgain) {
  const std::string go = dir_.File("go");
  Launch(Options("echo $4 runs; while ! test -e " + go + "; do sleep 0.01; done; rm " + go), 1);
  ASSERT_TRUE(Logged("w0", "runs"));
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 1); }));
  ASSERT_TRUE(launcher_->Release("w0").ok());
  ASSERT_TRUE(WriteFileAtomically(go, "").ok());
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kDrained, 1); }));
  launcher_->Reclaim("w0");
  EXPECT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 1) && Workers()[0].restarts == 1; }));
}

TEST_F(ProcessLauncherTest, AWorkerHasMoreTimeToEndThanItTakes) {
  // atoll-worker --drain-seconds is 20, and it says goodbye after that.
  EXPECT_GE(ProcessLauncherOptions().grace, Seconds(30));
}

TEST_F(ProcessLauncherTest, TellsAtOnceWhoIsWanted) {
  ProcessLauncherOptions options = Options("trap '' TERM; echo $4 runs; while :; do sleep 0.01; done");
  options.grace = Seconds(1);
  Launch(options, 3);
  ASSERT_TRUE(Logged("w0", "runs") && Logged("w1", "runs") && Logged("w2", "runs"));
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 3); })) << "a worker may run before it is shown";
  ASSERT_TRUE(launcher_->Scale(1).ok());
  EXPECT_THAT(launcher_->view().wanted, ::testing::ElementsAre("w0"));
  ASSERT_TRUE(WaitUntil([&] { return Workers().at(1).state == State::kStopping; }));
  ASSERT_TRUE(launcher_->Scale(2).ok());
  EXPECT_THAT(launcher_->view().wanted, ::testing::ElementsAre("w0", "w1")) << "w1 is ending, and comes back";
}

TEST_F(ProcessLauncherTest, WhenThereIsWorkAgainThoseThatEndAreStartedAgain) {
  Launch(Options("echo $4 runs; test $4 = w0 && exit 0; sleep 1; exit 0"), 2);
  ASSERT_TRUE(WaitUntil([&] { return Workers().at(0).state == State::kStopped; }));
  ASSERT_TRUE(Logged("w1", "w1 runs\n"));
  ASSERT_TRUE(launcher_->StartAgain().ok());
  EXPECT_TRUE(Logged("w0", "w0 runs\nw0 runs\n"));
  EXPECT_TRUE(Logged("w1", "w1 runs\nw1 runs\n")) << "it was about to end";
  EXPECT_TRUE(WaitUntil([&] { return AllAre(State::kStopped, 2); })) << "once";
}

TEST_F(ProcessLauncherTest, ScalingDownStopsThoseThatAreNoMembersFirst) {
  Make(Options(kSleeps));
  launcher_->SetMembers([](const WorkerName& name) { return name != "w0"; });
  launcher_->SetCoordinator("127.0.0.1:7600");
  ASSERT_TRUE(launcher_->Scale(3).ok());
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 3); }));
  ASSERT_TRUE(launcher_->Scale(2).ok());
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 2); }));
  EXPECT_EQ(Workers()[0].name, "w1");
  EXPECT_EQ(Workers()[1].name, "w2");
  EXPECT_EQ(launcher_->view().target, 2u);
}

TEST_F(ProcessLauncherTest, ThoseThatAnEarlierLifeLetGoStayAway) {
  Make(Options(kSleeps));
  EXPECT_TRUE(launcher_->Release("w0").ok());
  EXPECT_TRUE(launcher_->Release("w2").ok());
  EXPECT_TRUE(launcher_->Release("someone").ok());
  launcher_->SetCoordinator("127.0.0.1:7600");
  ASSERT_TRUE(launcher_->Scale(2).ok());
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 2); }));
  EXPECT_EQ(Workers()[0].name, "w1");
  EXPECT_EQ(Workers()[1].name, "w3");
  EXPECT_TRUE(launcher_->Owns("w2")) << "a restart may ask for it";
}

TEST_F(ProcessLauncherTest, ACrashLoopIsShownSlowedDownAndLeft) {
  ProcessLauncherOptions options = Options("test -e " + dir_.File("mended") + " && exec sleep 600; exit 6");
  options.backoff = {.initial = Seconds(0.001), .maximum = Seconds(0.05), .multiplier = 4};
  options.settled = Seconds(600);
  Launch(options, 1);
  ASSERT_TRUE(
      WaitUntil([&] { return launcher_->view().error.find("5 times in a row") != std::string::npos; }));
  EXPECT_TRUE(WaitUntil([&] { return launcher_->view().error.find("next start in") != std::string::npos; }));
  const LauncherView view = launcher_->view();
  EXPECT_THAT(view.error, AllOf(HasSubstr("w0 ended: exit code 6 (token or model files)"),
                                HasSubstr("its log: " + dir_.File("logs/w0.log"))));
  EXPECT_GE(view.workers[0].restarts, 4u);
  ASSERT_TRUE(WriteFileAtomically(dir_.File("mended"), "").ok());
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 1); }));
  EXPECT_THAT(launcher_->view().error,
              AllOf(HasSubstr("exit code 6"), HasSubstr("times in a row); restarting")))
      << "its next life may be as short as the last";
}

TEST_F(ProcessLauncherTest, ALongLifeAfterACrashLoopEndsTheComplaint) {
  ProcessLauncherOptions options = Options("test -e " + dir_.File("mended") + " && exec sleep 600; exit 6");
  options.backoff = {.initial = Seconds(0.001), .maximum = Seconds(0.05), .multiplier = 4};
  options.settled = Seconds(0.2);
  Launch(options, 1);
  ASSERT_TRUE(WaitUntil([&] { return launcher_->view().error.find("times in a row") != std::string::npos; }));
  ASSERT_TRUE(WriteFileAtomically(dir_.File("mended"), "").ok());
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 1); }));
  EXPECT_TRUE(WaitUntil([&] { return launcher_->view().error.empty(); }));
}

TEST_F(ProcessLauncherTest, WaitsLongerAfterEveryFailureInARow) {
  ProcessLauncherOptions options = Options("exit 1");
  options.backoff = {.initial = Seconds(0.001), .maximum = Seconds(3600), .multiplier = 100'000};
  Launch(options, 1);
  // The second draw is between 10 s and 100 s.
  ASSERT_TRUE(WaitUntil([&] {
    const auto workers = Workers();
    return !workers.empty() && workers[0].state == State::kWaiting && workers[0].next_start > Seconds(9);
  }));
  EXPECT_EQ(Workers()[0].restarts, 1u);
  // An operator does not have to wait, nor does one who ends it all.
  ASSERT_TRUE(launcher_->Restart("w0").ok());
  ASSERT_TRUE(WaitUntil([&] { return Workers()[0].restarts >= 2; }));
  launcher_->Shutdown();
}

TEST_F(ProcessLauncherTest, AFailureIsReportedWithTheErrorInTheLogOfThisLife) {
  // The second life writes JSON, the third one no error.
  Launch(Options(R"(echo x >> "$6.lives"; case $(wc -l < "$6.lives") in
1) echo '12:34:56.789 error   earlier'
   echo '12:34:56.789 error   the file w0.pt is not there  worker=w0'
   echo '12:34:56.789 info    an error is not this'; exit 2;;
2) echo '{"level":"error","message":"the port is in use"}'; exit 3;;
3) printf '{"level":"error"}\n{"level":7,"message":[]}\n{broken\n\n12:34:56.789'; exit 4;;
*) exec sleep 600;; esac)"),
         1);
  EXPECT_TRUE(HasEvent("-w0 ended: exit code 2", ": the file w0.pt is not there  worker=w0; restarting"));
  EXPECT_TRUE(HasEvent("-w0 ended: exit code 3", ": the port is in use (2 times in a row); restarting"));
  ASSERT_TRUE(HasEvent("-w0 ended: exit code 4"));
  for (const std::string& event : Events()) {
    const bool is_third = event.starts_with("-w0 ended: exit code 4");
    EXPECT_FALSE(is_third && event.find("port") != std::string::npos) << event;
  }
}

TEST_F(ProcessLauncherTest, ALongLifeMakesTheNextFailureTheFirst) {
  ProcessLauncherOptions options = Options("exit 1");
  options.settled = Duration::zero();
  Launch(options, 1);
  ASSERT_TRUE(WaitUntil([&] { return !Workers().empty() && Workers()[0].restarts >= 5; }));
  for (const std::string& event : Events()) EXPECT_THAT(event, Not(HasSubstr("in a row")));
}

TEST_F(ProcessLauncherTest, ScalingDownAsksTheHighestNumbersToFinish) {
  Launch(Options("trap 'echo bye; exit 0' TERM; echo $4 runs; while :; do sleep 0.01; done"), 3);
  ASSERT_TRUE(Logged("w0", "runs") && Logged("w1", "runs") && Logged("w2", "runs"));
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 3); }));
  ASSERT_TRUE(launcher_->Scale(1).ok());
  EXPECT_EQ(launcher_->view().target, 1u);
  ASSERT_TRUE(WaitUntil([&] { return Workers().size() == 1; }));
  EXPECT_EQ(Workers()[0].name, "w0");
  EXPECT_EQ(Workers()[0].state, State::kRunning);
  EXPECT_THAT(LogOf("w2"), HasSubstr("bye"));
  EXPECT_THAT(LogOf("w0"), Not(HasSubstr("bye")));
  EXPECT_TRUE(HasEvent("-w2 was stopped: exit code 0 after "));
  EXPECT_TRUE(launcher_->Owns("w2"));  // it made it, once
  ASSERT_TRUE(launcher_->Scale(2).ok());
  EXPECT_TRUE(Logged("w1", "bye\nw1 runs")) << LogOf("w1");
}

TEST_F(ProcessLauncherTest, OneThatIsEndingComesBackWhenItIsWantedAgain) {
  const std::string go = dir_.File("go");
  Launch(Options("trap '' TERM; echo $4 runs; while ! test -e " + go + "; do sleep 0.01; done"), 1);
  ASSERT_TRUE(Logged("w0", "runs"));
  ASSERT_TRUE(launcher_->Scale(0).ok());
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kStopping, 1); }));
  ASSERT_TRUE(launcher_->Scale(1).ok());
  ASSERT_TRUE(WriteFileAtomically(go, "").ok());
  EXPECT_TRUE(Logged("w0", "w0 runs\nw0 runs"));
  EXPECT_TRUE(HasEvent("-w0 was stopped"));
}

TEST_F(ProcessLauncherTest, OneThatIgnoresSigtermIsKilledWhenTheGraceIsOver) {
  ProcessLauncherOptions options = Options("trap '' TERM; echo $4 runs; while :; do sleep 0.01; done");
  options.grace = Seconds(0.05);
  Launch(options, 1);
  ASSERT_TRUE(Logged("w0", "runs"));
  ASSERT_TRUE(launcher_->Scale(0).ok());
  ASSERT_TRUE(WaitUntil([&] { return Workers().empty(); }));
  EXPECT_TRUE(WaitUntil([&] { return Events().size() == 2; }));
  EXPECT_THAT(Events().back(), AllOf(HasSubstr("-w0 was stopped: killed by SIGKILL"), HasSubstr("SIGTERM")));
}

TEST_F(ProcessLauncherTest, OneThatDrainsAndDoesNotAnswerIsEndedAndStaysDrained) {
  ProcessLauncherOptions options = Options("trap '' TERM; echo $4 runs; while :; do sleep 0.01; done");
  options.grace = Seconds(0.05);
  Launch(options, 1);
  ASSERT_TRUE(Logged("w0", "w0 runs"));
  launcher_->Lost("w0", /*restart=*/false);  // nobody drained it
  const pid_t pid = PidOf(0);
  ASSERT_TRUE(launcher_->Release("w0").ok());
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kDraining, 1); }));
  EXPECT_FALSE(Gone(pid));
  ::kill(pid, SIGSTOP);
  launcher_->Lost("w0", /*restart=*/false);
  EXPECT_TRUE(WaitUntil([&] { return Gone(pid); }));
  EXPECT_TRUE(HasEvent("-w0 was drained: killed by SIGKILL", "only `atollctl workers restart w0`"));
  EXPECT_TRUE(WaitUntil([&] { return AllAre(State::kDrained, 1); }));
  launcher_->Lost("w0", /*restart=*/false);
  ASSERT_TRUE(launcher_->Restart("w0").ok());
  EXPECT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 1); }));
}

TEST_F(ProcessLauncherTest, OneThatWasToRestartAndDoesNotAnswerIsReplaced) {
  Launch(Options(kSleeps), 1);
  ASSERT_TRUE(Logged("w0", "w0 runs"));
  const pid_t pid = PidOf(0);
  ASSERT_TRUE(Workers()[0].age.has_value());
  ::kill(pid, SIGSTOP);
  launcher_->Lost("w0", /*restart=*/true);
  launcher_->Lost("x9", /*restart=*/true);
  EXPECT_TRUE(WaitUntil([&] { return Gone(pid); }));
  EXPECT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 1) && PidOf(0) != pid; }));
}

TEST_F(ProcessLauncherTest, AFrozenOneCanBeRestarted) {
  Launch(Options(kSleeps), 1);
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 1); }));
  ::kill(PidOf(0), SIGSTOP);
  ASSERT_TRUE(launcher_->Restart("w0").ok());
  ASSERT_TRUE(WaitUntil([&] { return Workers()[0].restarts == 1 && AllAre(State::kRunning, 1); }));
  EXPECT_THAT(Workers()[0].last_exit, HasSubstr("SIGTERM"));
  EXPECT_EQ(launcher_->view().error, "");
}

TEST_F(ProcessLauncherTest, SaysThatTheProgramIsMissingAndStartsItWhenItIsThere) {
  const std::string program = dir_.File("worker");
  ProcessLauncherOptions options = Options("");
  options.command.program = program;
  options.command.arguments.clear();
  options.settled = Seconds(0.2);
  Launch(options, 2);
  ASSERT_TRUE(WaitUntil([&] { return launcher_->view().error.find("and 1 more") != std::string::npos; }));
  EXPECT_THAT(launcher_->view().error, AllOf(HasSubstr("w0 cannot be started"), HasSubstr(program)));
  EXPECT_TRUE(HasEvent("-w1 cannot be started", program));
  ASSERT_TRUE(WriteFileAtomically(program, "#!/bin/sh\nexec sleep 600\n", 0755).ok());
  EXPECT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 2); }));
  EXPECT_TRUE(WaitUntil([&] { return launcher_->view().error.empty(); }));
}

TEST_F(ProcessLauncherTest, OthersAreNotItsWorkers) {
  Launch(Options(kSleeps), 1);
  for (const char* name : {"w1", "w01", "other", "w", ""}) {
    EXPECT_TRUE(absl::IsNotFound(launcher_->Restart(name))) << name;
    EXPECT_FALSE(launcher_->Owns(name)) << name;
  }
  EXPECT_TRUE(launcher_->Owns("w0"));
  for (const char* prefix : {"", "W", "-w", "a b", "7"}) {
    ProcessLauncherOptions options = Options(kSleeps);
    options.name_prefix = prefix;
    EXPECT_TRUE(absl::IsInvalidArgument(ProcessLauncher::Create(options, &clock_).status())) << prefix;
  }
}

TEST_F(ProcessLauncherTest, ShutdownEndsAllAndTellsIt) {
  Launch(Options(kSleeps), 3);
  ASSERT_TRUE(WaitUntil([&] { return AllAre(State::kRunning, 3); }));
  const std::vector<pid_t> pids = {PidOf(0), PidOf(1), PidOf(2)};
  launcher_->Shutdown();
  for (const pid_t pid : pids) EXPECT_TRUE(Gone(pid));
  EXPECT_THAT(Workers(), IsEmpty());
  EXPECT_EQ(Events().size(), 6u);
  launcher_->Shutdown();
  EXPECT_TRUE(absl::IsUnavailable(launcher_->Scale(1)));
  EXPECT_TRUE(absl::IsUnavailable(launcher_->Restart("w0")));
}

}  // namespace
}  // namespace atl

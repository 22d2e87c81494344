#include "server/launch/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <thread>

#include "common/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/test_dir.h"
#include "tests/launch/wait_until.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ChildProcessTest : public ::testing::Test {
 protected:
  absl::StatusOr<ChildProcess> Shell(const std::string& script) {
    return ChildProcess::Start({"sh", "-c", script}, Log());
  }
  std::string Log() const { return dir_.File("log"); }
  std::string Written() const { return ReadFile(Log()).value_or(""); }

  static ProcessExit End(ChildProcess& child) {
    pollfd watched = {.fd = child.descriptor(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&watched, 1, 20'000), 1) << "it does not end";
    return child.Reap().value_or(ProcessExit{});
  }

  TestDir dir_;
};

TEST_F(ChildProcessTest, TellsHowItEnded) {
  auto three = Shell("echo out; echo err >&2; exit 3");
  ASSERT_TRUE(three.ok()) << three.status();
  const ProcessExit exit = End(*three);
  EXPECT_EQ(exit.code, 3);
  EXPECT_EQ(exit.signal, 0);
  EXPECT_EQ(Describe(exit), "exit code 3 (unavailable)");
  EXPECT_EQ(three->Reap(), std::nullopt);
  EXPECT_EQ(Written(), "out\nerr\n");

  auto killed = Shell("kill -9 $$");
  ASSERT_TRUE(killed.ok());
  const ProcessExit signal = End(*killed);
  EXPECT_EQ(signal.signal, SIGKILL);
  EXPECT_FALSE(signal.clean());
  EXPECT_EQ(Describe(signal), "killed by SIGKILL");
  auto good = Shell("exit 0");
  ASSERT_TRUE(good.ok());
  EXPECT_TRUE(End(*good).clean());
}

TEST_F(ChildProcessTest, SaysWhatCannotBeRun) {
  const auto missing = ChildProcess::Start({"/no/such/worker"}, Log());
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("/no/such/worker"));
  ASSERT_TRUE(WriteFileAtomically(dir_.File("plain"), "text").ok());
  const auto plain = ChildProcess::Start({dir_.File("plain")}, Log());
  EXPECT_TRUE(absl::IsPermissionDenied(plain.status())) << plain.status();
  const auto unlogged = ChildProcess::Start({"true"}, dir_.File("no/folder/log"));
  EXPECT_THAT(std::string(unlogged.status().message()), HasSubstr("no/folder/log"));
  EXPECT_TRUE(absl::IsInvalidArgument(ChildProcess::Start({}, Log()).status()));
  // Nothing stays behind of those that never became a program.
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST_F(ChildProcessTest, LeavesOtherChildrenAlone) {
  const pid_t other = ::fork();
  if (other == 0) ::_exit(5);
  auto child = Shell("exit 1");
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(End(*child).code, 1);
  int status = 0;
  ASSERT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_EQ(WEXITSTATUS(status), 5);
}

TEST_F(ChildProcessTest, ASignalReachesTheWholeGroup) {
  auto child = Shell("sleep 600 & echo $! > " + dir_.File("pid") + "; wait");
  ASSERT_TRUE(child.ok());
  ASSERT_TRUE(WaitUntil([&] { return !ReadFile(dir_.File("pid")).value_or("").empty(); }));
  const pid_t grandchild = std::stoi(*ReadFile(dir_.File("pid")));
  EXPECT_EQ(::getpgid(grandchild), child->pid());
  EXPECT_NE(::getpgid(0), child->pid());
  child->Signal(SIGTERM);
  EXPECT_EQ(End(*child).signal, SIGTERM);
  EXPECT_TRUE(WaitUntil([&] { return Gone(grandchild); }));
}

TEST_F(ChildProcessTest, WhatItLeftRunningIsKilledWithIt) {
  auto child = Shell("trap '' TERM; sleep 600 & echo $! > " + dir_.File("pid"));
  ASSERT_TRUE(child.ok());
  EXPECT_TRUE(End(*child).clean());
  const pid_t grandchild = std::stoi(*ReadFile(dir_.File("pid")));
  EXPECT_TRUE(WaitUntil([&] { return Gone(grandchild); }));
}

TEST_F(ChildProcessTest, InheritsNoOpenFileAndNoIgnoredSignal) {
  const int leak = ::open("/dev/null", O_RDONLY);  // not close-on-exec
  ASSERT_GE(leak, 0);
  ::signal(SIGPIPE, SIG_IGN);
  auto child = Shell("ls /proc/self/fd | tr '\\n' ' '; grep -E 'SigIgn|SigBlk' /proc/self/status; cat");
  ::signal(SIGPIPE, SIG_DFL);
  ASSERT_TRUE(child.ok());
  EXPECT_TRUE(End(*child).clean());  // `cat` found nothing to read
  ::close(leak);
  EXPECT_THAT(Written(), AllOf(HasSubstr("0 1 2 3 "), HasSubstr("SigIgn:\t0000000000000000"),
                               HasSubstr("SigBlk:\t0000000000000000")));
  EXPECT_EQ(Written().find("0 1 2 3 4"), std::string::npos) << Written();  // 3 is ls's own
}

TEST_F(ChildProcessTest, EndsWithTheThreadThatStartedIt) {
  // A thread's end is what a kill -9 of the whole program looks like to the kernel.
  std::optional<ChildProcess> child;
  std::thread([&] {
    auto started = ChildProcess::Start({"sleep", "600"}, Log());
    ASSERT_TRUE(started.ok());
    child.emplace(*std::move(started));
  }).join();
  ASSERT_TRUE(child.has_value());
  EXPECT_EQ(End(*child).signal, SIGKILL);
}

TEST_F(ChildProcessTest, IsKilledWhenItIsDropped) {
  pid_t pid = 0;
  {
    auto child = ChildProcess::Start({"sleep", "600"}, Log());
    ASSERT_TRUE(child.ok());
    pid = child->pid();
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

}  // namespace
}  // namespace atl

#include "common/shutdown.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "common/mutex.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

TEST(ShutdownTest, ASignalIsWaitedFor) {
  auto shutdown = Shutdown::Install();
  ASSERT_TRUE(shutdown.ok()) << shutdown.status();
  EXPECT_FALSE((*shutdown)->requested());
  EXPECT_FALSE((*shutdown)->WaitFor(Seconds(0.01)));
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  (*shutdown)->Wait();
  EXPECT_TRUE((*shutdown)->requested());
  EXPECT_TRUE((*shutdown)->WaitFor(Seconds(0)));
  EXPECT_EQ((*shutdown)->signal(), SIGTERM);
}

TEST(ShutdownTest, AHangupIsASignalToEndAndMayComeTwice) {
  auto shutdown = Shutdown::Install();
  ASSERT_TRUE(shutdown.ok()) << shutdown.status();
  ASSERT_EQ(::raise(SIGHUP), 0);
  (*shutdown)->Wait();
  EXPECT_EQ((*shutdown)->signal(), SIGHUP);
  ASSERT_EQ(::raise(SIGHUP), 0);
  EXPECT_TRUE((*shutdown)->requested());
}

TEST(ShutdownTest, WhatAParentRepeatsIsOneSignal) {
  auto shutdown = Shutdown::Install(::getppid());
  ASSERT_TRUE(shutdown.ok()) << shutdown.status();
  ASSERT_EQ(::raise(SIGTERM), 0);
  (*shutdown)->Wait();
  ASSERT_EQ(::raise(SIGTERM), 0);
  ASSERT_EQ(::raise(SIGINT), 0);
  EXPECT_EQ((*shutdown)->signal(), SIGTERM);
}

TEST(ShutdownTest, AnIgnoredHangupStaysIgnored) {
  const auto before = ::signal(SIGHUP, SIG_IGN);
  {
    auto shutdown = Shutdown::Install();
    ASSERT_TRUE(shutdown.ok()) << shutdown.status();
    ASSERT_EQ(::raise(SIGHUP), 0);
    EXPECT_FALSE((*shutdown)->WaitFor(Seconds(0.01)));
  }
  EXPECT_EQ(::signal(SIGHUP, before), SIG_IGN) << "as it was";
}

TEST(ShutdownTest, RequestWithoutASignal) {
  auto shutdown = Shutdown::Install();
  ASSERT_TRUE(shutdown.ok());
  std::thread other([&] { (*shutdown)->Request(); });
  (*shutdown)->Wait();
  other.join();
  EXPECT_EQ((*shutdown)->signal(), 0);
}

TEST(ShutdownTest, CallbacksRunOnceInOrderAndAlsoWhenAddedLate) {
  auto shutdown = Shutdown::Install();
  ASSERT_TRUE(shutdown.ok());
  Mutex mutex;
  CondVar changed;
  std::string order;
  const auto add = [&](char c) {
    return [&, c] {
      MutexLock lock(&mutex);
      order.push_back(c);
      changed.NotifyAll();
    };
  };
  (*shutdown)->OnRequest(add('a'));
  (*shutdown)->OnRequest(add('b'));
  (*shutdown)->Request();
  (*shutdown)->Request();
  {
    MutexLock lock(&mutex);
    while (order.size() < 2) changed.Wait(&mutex);
  }
  (*shutdown)->OnRequest(add('c'));
  MutexLock lock(&mutex);
  while (order.size() < 3) changed.Wait(&mutex);
  EXPECT_EQ(order, "abc");
}

TEST(ShutdownTest, OneAtATime) {
  auto first = Shutdown::Install();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(Shutdown::Install().status().code(), absl::StatusCode::kFailedPrecondition);
  first->reset();
  EXPECT_TRUE(Shutdown::Install().ok());
}

TEST(ShutdownTest, SigpipeIsIgnored) {
  auto shutdown = Shutdown::Install();
  ASSERT_TRUE(shutdown.ok());
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  EXPECT_EQ(::write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  ::close(ends[1]);
}

/// The exit code of a process that gets two signals; 2 when the second one does not end it.
int CodeAfter(int first, int second, std::chrono::milliseconds between) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto shutdown = Shutdown::Install();
    if (!shutdown.ok()) ::_exit(1);
    ::raise(first);
    (*shutdown)->Wait();
    std::this_thread::sleep_for(between);
    ::raise(second);
    ::_exit(2);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

TEST(ShutdownTest, ASecondSignalEndsTheProcess) {
  EXPECT_EQ(CodeAfter(SIGINT, SIGINT, std::chrono::milliseconds(600)), 130);
  EXPECT_EQ(CodeAfter(SIGTERM, SIGINT, std::chrono::milliseconds(0)), 130);
}

TEST(ShutdownTest, WhatTimeoutSendsTwiceIsOneSignal) {
  EXPECT_EQ(CodeAfter(SIGINT, SIGINT, std::chrono::milliseconds(0)), 2);
  EXPECT_EQ(CodeAfter(SIGTERM, SIGTERM, std::chrono::milliseconds(0)), 2);
}

TEST(ShutdownTest, ASignalAtTheVeryEndLeavesTheExitCode) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto shutdown = Shutdown::Install();
    if (!shutdown.ok()) ::_exit(1);
    ::raise(SIGTERM);
    (*shutdown)->Wait();
    shutdown->reset();
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::raise(number);
    ::_exit(8);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 8);
}

}  // namespace
}  // namespace atl

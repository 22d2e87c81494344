// Signals that reach a rank before its handlers stand. The ranks are processes of this test program.
#include "worker/island/rank_process.h"

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/exit_codes.h"
#include "common/shutdown.h"
#include "gtest/gtest.h"
#include "worker/island/supervisor.h"

namespace atl {
namespace {

constexpr char kPart[] = "ATOLL_RANK_PROCESS_TEST";
constexpr int kSurvived = 9;

/// Arguments of this program that run `test` alone.
std::vector<char*> ArgumentsFor(std::string& filter, const std::string& test) {
  static char program[] = "rank_process_test";
  filter = "--gtest_filter=" + test;
  return {program, filter.data(), nullptr};
}

TEST(RankProcessTest, ASignalWaitsUntilTheRankAcceptsIt) {
  if (std::getenv(kPart) != nullptr) {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::raise(signal);
    (void)!::write(STDERR_FILENO, "loaded\n", 7);
    AcceptStopSignals();
    ::_exit(kSurvived);
  }
  std::string filter;
  const std::vector<char*> arguments =
      ArgumentsFor(filter, "RankProcessTest.ASignalWaitsUntilTheRankAcceptsIt");
  sigset_t before;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  auto rank = RankProcess::Start(1, arguments.data(), {std::string(kPart) + "=1"});
  ASSERT_TRUE(rank.ok()) << rank.status();
  sigset_t after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    EXPECT_EQ(::sigismember(&after, signal), ::sigismember(&before, signal)) << "of this process: " << signal;
  }
  // At once, perhaps before the program is executed.
  rank->Signal(SIGTERM);
  std::string said;
  while (true) {
    char byte = 0;
    pollfd wait{.fd = rank->log_descriptor(), .events = POLLIN, .revents = 0};
    ASSERT_GT(::poll(&wait, 1, 60000), 0) << said;
    if (::read(rank->log_descriptor(), &byte, 1) != 1) break;
    said += byte;
  }
  EXPECT_EQ(said, "loaded\n");
  while (!rank->CheckEnd()) ::poll(nullptr, 0, 1);
  EXPECT_TRUE(rank->end()->by_signal) << rank->end()->Text();
  EXPECT_TRUE(rank->end()->WasOrdered()) << rank->end()->Text();
}

TEST(RankProcessTest, OnlySignalsThatAskForAnEndAreOrders) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    EXPECT_TRUE((RankEnd{.by_signal = true, .code = signal}.WasOrdered())) << signal;
    EXPECT_FALSE((RankEnd{.by_signal = false, .code = signal}.WasOrdered())) << signal;
  }
  for (const int signal : {SIGKILL, SIGSEGV, SIGABRT, SIGBUS}) {
    EXPECT_FALSE((RankEnd{.by_signal = true, .code = signal}.WasOrdered())) << signal;
  }
}

TEST(SupervisorTest, ARankThatEndsBySigtermEndsTheIsland) {
  if (std::getenv(kPart) != nullptr) {
    if (std::string(std::getenv("RANK")) == "1") {
      ::raise(SIGTERM);
      AcceptStopSignals();
    }
    ::pause();  // rank 0 waits for the other one
  }
  std::string filter;
  const std::vector<char*> arguments =
      ArgumentsFor(filter, "SupervisorTest.ARankThatEndsBySigtermEndsTheIsland");
  std::string variable = std::string(kPart) + "=1";
  const std::vector<char*> environment = {variable.data(), nullptr};
  auto shutdown = Shutdown::Install();
  ASSERT_TRUE(shutdown.ok()) << shutdown.status();
  // As a loss it would be the end too, with the code of a coordinator that is not there.
  EXPECT_EQ(SuperviseRanks({.ranks = 2,
                            .max_restarts = 0,
                            .arguments = arguments.data(),
                            .environment = environment.data(),
                            .log = Logger()},
                           **shutdown),
            128 + SIGTERM);
}

TEST(SupervisorTest, NoPlaceForTheStoreIsNoDefectOfOurs) {
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before != nullptr ? before : "";
  ASSERT_EQ(::setenv("TMPDIR", "/nonexistent/folder", 1), 0);
  auto shutdown = Shutdown::Install();
  ASSERT_TRUE(shutdown.ok()) << shutdown.status();
  const std::vector<char*> nothing = {nullptr};
  EXPECT_EQ(SuperviseRanks({.ranks = 2,
                            .max_restarts = 0,
                            .arguments = nothing.data(),
                            .environment = nothing.data(),
                            .log = Logger()},
                           **shutdown),
            ToInt(ExitCode::kStorage));
  before != nullptr ? ::setenv("TMPDIR", kept.c_str(), 1) : ::unsetenv("TMPDIR");
}

}  // namespace
}  // namespace atl

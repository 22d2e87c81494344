// Calls beside and after atl_close, and an engine that reads nothing. No coordinator answers.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/client/library/caller.h"
#include "tests/client/library/processes.h"
#include "tests/common/test_dir.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

constexpr int kThreads = 4;

class CloseTest : public ::testing::Test {
 protected:
  void Open() {
    ASSERT_EQ(caller_.Open({{"coordinator", "127.0.0.1:1"},
                            {"state-dir", dir_.File("state")},
                            {"log-file", dir_.File("log")}}),
              ATL_OK)
        << caller_.error().message;
    ASSERT_EQ(ChildrenOf(::getpid()).size(), 1U);
    engine_ = ChildrenOf(::getpid()).front();
  }
  /// Calls atl_status until it fails, and returns that code.
  static atl_code Poll(atl_client* client) {
    while (true) {
      char* json = nullptr;
      const atl_code code = atl_status(client, &json, nullptr);
      atl_free(json);
      if (code != ATL_OK) return code;
    }
  }

  TestDir dir_;
  pid_t engine_ = 0;
  Caller caller_{Manifest{.tensors = {{.name = "w", .shape = {2}}}}};
};

TEST_F(CloseTest, EveryCallWithAClosedClientIsRefused) {
  ASSERT_NO_FATAL_FAILURE(Open());
  atl_client* const closed = caller_.client();
  caller_.Close();
  // A handle is not given again, so none of these reaches this one.
  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_NE(caller_.client(), closed);
  atl_error error = {};
  char* json = nullptr;
  EXPECT_EQ(atl_status(closed, &json, &error), ATL_FAILED_PRECONDITION);
  EXPECT_THAT(error.message, HasSubstr("this client is closed"));
  EXPECT_EQ(atl_drain(closed, nullptr), ATL_FAILED_PRECONDITION);
  EXPECT_EQ(atl_stop(closed, nullptr), ATL_FAILED_PRECONDITION);
  atl_event event = {};
  event.size = sizeof(event);
  EXPECT_EQ(atl_next(closed, 0, &event, nullptr), ATL_FAILED_PRECONDITION);
  atl_answer_fields answer = {};
  answer.size = sizeof(answer);
  EXPECT_EQ(atl_answer(closed, &answer, nullptr), ATL_FAILED_PRECONDITION);
  EXPECT_STREQ(atl_run_json(closed), "");
  atl_close(closed);
  EXPECT_EQ(caller_.Next(0.01, event), ATL_DEADLINE_EXCEEDED) << "the open client goes on";
}

TEST_F(CloseTest, ThreadsMayAskWhileAnotherCloses) {
  for (int life = 0; life < 3; ++life) {
    ASSERT_NO_FATAL_FAILURE(Open());
    std::vector<std::thread> threads;
    std::atomic<int> refused{0};
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, client = caller_.client()] {
        if (Poll(client) == ATL_FAILED_PRECONDITION) ++refused;
      });
    }
    caller_.Close();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(refused, kThreads);
  }
}

TEST_F(CloseTest, ACloseEndsANextThatWaits) {
  ASSERT_NO_FATAL_FAILURE(Open());
  std::atomic<bool> begun{false};
  atl_code code = ATL_OK;
  std::thread waits([&, client = caller_.client()] {
    atl_event event = {};
    event.size = sizeof(event);
    begun = true;
    code = atl_next(client, -1, &event, nullptr);
  });
  EXPECT_TRUE(Await([&] { return begun.load(); }));
  caller_.Close();
  EXPECT_FALSE(Runs(engine_)) << "closed when the call returns, although another call still used the client";
  waits.join();
  EXPECT_EQ(code, ATL_FAILED_PRECONDITION);
}

TEST_F(CloseTest, AForkBesideCallsLeavesTheChildUsable) {
  ASSERT_NO_FATAL_FAILURE(Open());
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([client = caller_.client()] { EXPECT_EQ(Poll(client), ATL_FAILED_PRECONDITION); });
  for (int i = 0; i < 100; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(60);  // for a call that never returns
      const atl_code code = atl_stop(caller_.client(), nullptr);
      caller_.Close();
      ::_exit(code == ATL_FAILED_PRECONDITION ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  caller_.Close();
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CloseTest, AnEngineThatReadsNothingHoldsUpNoDrainAndNoClose) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_EQ(::kill(engine_, SIGSTOP), 0);
  // More than its socket can hold.
  for (int i = 0; i < 100'000; ++i) ASSERT_EQ(atl_drain(caller_.client(), nullptr), ATL_OK);
  ASSERT_EQ(atl_stop(caller_.client(), nullptr), ATL_OK);
  caller_.Close();
  EXPECT_FALSE(Runs(engine_));
}

/// What the first three descriptors are; empty: closed.
std::vector<std::string> StandardStreams() {
  std::vector<std::string> found;
  for (int number = 0; number <= STDERR_FILENO; ++number) {
    char target[256] = {};
    const std::string path = "/proc/self/fd/" + std::to_string(number);
    found.emplace_back(target, std::max<ssize_t>(0, ::readlink(path.c_str(), target, sizeof(target))));
  }
  return found;
}

TEST_F(CloseTest, AClientTakesNoNumberOfAClosedStandardStream) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (int number = 0; number <= STDERR_FILENO; ++number) ::close(number);
    Open();
    const bool kept = caller_.client() != nullptr && StandardStreams() == std::vector<std::string>(3);
    caller_.Close();
    ::_exit(kept ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace atl

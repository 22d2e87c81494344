#include "common/http/http_daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "common/http/connection_table.h"
#include "common/http/listen_socket.h"
#include "common/mutex.h"
#include "tests/server/web/raw_http.h"

namespace atl {
namespace {

constexpr char kRequest[] = "GET /slow HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// Keeps the tasks of a daemon until the test runs them.
class Tasks {
 public:
  bool Post(std::function<void()> task) {
    const MutexLock lock(&mutex_);
    tasks_.push_back(std::move(task));
    return true;
  }
  std::function<void()> Take() {
    while (true) {
      {
        const MutexLock lock(&mutex_);
        if (!tasks_.empty()) {
          auto task = std::move(tasks_.front());
          tasks_.erase(tasks_.begin());
          return task;
        }
      }
      std::this_thread::yield();
    }
  }

 private:
  Mutex mutex_;
  std::vector<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
};

TEST(HttpDaemonTest, DoesNotWorkForClientsThatHaveGone) {
  auto address = ParseBindAddress("127.0.0.1:0");
  ASSERT_TRUE(address.ok());
  const auto listener = ListenOn(*address);
  ASSERT_TRUE(listener.ok()) << listener.status();
  const SystemClock clock;
  ConnectionTable connections(&clock);
  Tasks tasks;
  int answers = 0;
  auto daemon =
      HttpDaemon::Start(*listener, std::nullopt, {.skip_gone_clients = true},
                        {.answer = [&](const WebRequest&) { return ++answers, WebReply{.body = "done"}; },
                         .is_quick = [](const WebRequest&) { return false; },
                         .post = [&](std::function<void()> task) { return tasks.Post(std::move(task)); },
                         .connections = &connections});
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  FileDescriptor gone = ConnectTo(address->port);
  SendText(gone, kRequest);
  const auto first = tasks.Take();
  gone.Reset();
  first();
  EXPECT_EQ(answers, 0);
  const FileDescriptor waits = ConnectTo(address->port);
  SendText(waits, kRequest);
  tasks.Take()();
  EXPECT_EQ(BodyIn(ReadAll(waits)), "done");
  EXPECT_EQ(answers, 1);
}

}  // namespace
}  // namespace atl

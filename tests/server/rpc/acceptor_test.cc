#include "server/rpc/acceptor.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <vector>

#include "common/mutex.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

/// Connects over loopback. Invalid when there is nobody.
FileDescriptor ConnectTo(uint16_t port) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&where), sizeof(where)) != 0) return {};
  return socket;
}

bool IsHungUp(const FileDescriptor& socket, int patience_ms) {
  pollfd watched = {socket.get(), POLLIN | POLLRDHUP, 0};
  return ::poll(&watched, 1, patience_ms) == 1 && (watched.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

class AcceptorTest : public ::testing::Test {
 protected:
  void Start(ConnectionLimits limits) {
    auto acceptor =
        Acceptor::Listen({.host = "127.0.0.1", .port = 0},
                         {.limits = limits, .on_rejected = [this](ConnectionLimiter::Verdict verdict) {
                            const MutexLock lock(&mutex_);
                            rejected_.push_back(verdict);
                            changed_.NotifyAll();
                          }});
    ASSERT_TRUE(acceptor.ok()) << acceptor.status();
    acceptor_ = *std::move(acceptor);
    acceptor_->Start(
        [this](FileDescriptor connection) {
          const MutexLock lock(&mutex_);
          taken_.push_back(std::move(connection));
          changed_.NotifyAll();
        },
        &clock_);
  }
  uint16_t port() const { return acceptor_->address().port; }

  void AwaitTaken(size_t count) {
    const MutexLock lock(&mutex_);
    while (taken_.size() < count) changed_.Wait(&mutex_);
  }
  void AwaitRejected(size_t count) {
    const MutexLock lock(&mutex_);
    while (rejected_.size() < count) changed_.Wait(&mutex_);
  }
  /// Waits until so many connections were answered; whether any of them is taken.
  bool AwaitAnswers(size_t count) {
    const MutexLock lock(&mutex_);
    while (taken_.size() + rejected_.size() < count) changed_.Wait(&mutex_);
    return !taken_.empty();
  }
  void DropTaken() {
    const MutexLock lock(&mutex_);
    taken_.clear();
  }

  const SystemClock clock_{};
  Mutex mutex_;
  CondVar changed_;
  std::vector<FileDescriptor> taken_ ABSL_GUARDED_BY(mutex_);
  std::vector<ConnectionLimiter::Verdict> rejected_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Acceptor> acceptor_;
};

TEST_F(AcceptorTest, HandsOverWhatThereIsRoomForAndHangsUpOnTheRest) {
  Start({.total = 2, .per_address = 2});
  const FileDescriptor first = ConnectTo(port());
  const FileDescriptor second = ConnectTo(port());
  AwaitTaken(2);
  const FileDescriptor third = ConnectTo(port());
  EXPECT_TRUE(IsHungUp(third, 5000));
  AwaitRejected(1);
  DropTaken();  // as gRPC ends connections: nobody is told
  // The limiter looks at most every 100 ms: some more may be refused meanwhile.
  for (size_t asked = 2;; ++asked) {
    const FileDescriptor next = ConnectTo(port());
    if (AwaitAnswers(asked)) break;
  }
}

TEST_F(AcceptorTest, RunningOutOfDescriptorsIsNotTheEnd) {
  Start({});
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const FileDescriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // The number of the next descriptor is above this limit.
  const rlimit none = {static_cast<rlim_t>(client.get()) + 1, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_port = htons(port());
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int connected = ::connect(client.get(), reinterpret_cast<const sockaddr*>(&where), sizeof(where));
  pollfd watched = {client.get(), POLLIN | POLLRDHUP, 0};
  const int heard = ::poll(&watched, 1, 300);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(connected, 0) << "the system's queue takes it";
  EXPECT_EQ(heard, 0) << "it waits, and is not sent away";
  AwaitTaken(1);
}

TEST_F(AcceptorTest, AfterStopThePortIsFree) {
  Start({});
  const BindAddress address = acceptor_->address();
  EXPECT_FALSE(Acceptor::Listen(address, {}).ok());
  acceptor_->Stop();
  acceptor_->Stop();
  EXPECT_FALSE(ConnectTo(address.port).valid());
  EXPECT_TRUE(Acceptor::Listen(address, {}).ok());
}

TEST_F(AcceptorTest, AnyInterfaceTakesIpv4) {
  auto acceptor = Acceptor::Listen({.host = "0.0.0.0", .port = 0}, {});
  ASSERT_TRUE(acceptor.ok()) << acceptor.status();
  EXPECT_TRUE(ConnectTo((*acceptor)->address().port).valid());
}

TEST_F(AcceptorTest, SaysWhyItCannotListen) {
  const auto acceptor = Acceptor::Listen({.host = "203.0.113.7", .port = 0}, {});
  EXPECT_NE(std::string(acceptor.status().message()).find("203.0.113.7"), std::string::npos);
}

}  // namespace
}  // namespace atl

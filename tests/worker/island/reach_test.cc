// Rank 1 whose rank 0 has announced itself in the store, over c10d's store, and is not reached.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/file_descriptor.h"
#include "common/thread.h"
#include "tests/worker/torch/free_port.h"
#include "worker/island/frame_socket.h"
#include "worker/island/island.h"
#include "worker/torch/rank_group.h"

namespace atl {
namespace {

using testing::FreePort;
using ::testing::HasSubstr;
using ::testing::Not;

// Means this host, but is no address of the loopback.
constexpr char kThisHost[] = "0.0.0.0";

FileDescriptor Tcp() {
  return FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// A port whose queue of connections is full: the kernel drops what comes, as a firewall does.
class DroppingPort {
 public:
  DroppingPort() : listener_(Tcp()) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    EXPECT_EQ(::bind(listener_.get(), generic(), size), 0);
    EXPECT_EQ(::getsockname(listener_.get(), generic(), &size), 0);
    EXPECT_EQ(::listen(listener_.get(), 0), 0);
    for (int i = 0; i < 4; ++i) {
      waiting_.push_back(Tcp());
      (void)::connect(waiting_.back().get(), generic(), sizeof(address_));
    }
  }
  uint16_t port() const { return ntohs(address_.sin_port); }

 private:
  sockaddr* generic() { return reinterpret_cast<sockaddr*>(&address_); }

  sockaddr_in address_ = {};
  const FileDescriptor listener_;
  std::vector<FileDescriptor> waiting_;
};

/// The store of rank 0's host, and rank 1.
class ReachTest : public ::testing::Test {
 protected:
  absl::Status Form(const std::string& announced, Duration timeout) {
    const uint16_t port = FreePort();
    const auto store =
        RankStore::Open({.host = kThisHost, .port = port, .hosts_store = true, .prefix = "atoll/"});
    EXPECT_TRUE(store.ok()) << store.status();
    EXPECT_TRUE((*store)->Set("rank0", announced).ok());
    const std::jthread next_life([&] { NextLife(**store); });
    RankFacts facts;
    facts.rank = 1;
    facts.size = 2;
    LogOptions to_memory;
    to_memory.stream = &log_;
    const IslandPlace place{.rank = 1, .size = 2, .store_host = kThisHost, .store_port = port};
    return Island::Form({.place = place,
                         .facts = facts,
                         .device = "cpu",
                         .timeout = timeout,
                         .log = *Logger::Create(to_memory),
                         .on_broken = [](const absl::Status&) {},
                         .on_drain = [] {},
                         .asked_to_end = nullptr})
        .status();
  }

  /// After 2 s, rank 0 announces this place in the store.
  void NextLife(RankStore& store) const {
    if (next_announced_.empty()) return;
    SleepThisThread(Seconds(2));
    EXPECT_TRUE(store.Set("rank0", next_announced_).ok());
  }

  std::string next_announced_;
  std::ostringstream log_;
};

TEST_F(ReachTest, AFirewallIsNamedAfterLinesThatSayWhoIsWaitedFor) {
  const DroppingPort dropping;
  const absl::Status reached = Form(absl::StrCat(kThisHost, "|", dropping.port()), Seconds(1));
  EXPECT_TRUE(absl::IsUnavailable(reached)) << reached;
  EXPECT_THAT(std::string(reached.message()), HasSubstr("does not answer"));
  EXPECT_THAT(std::string(reached.message()), HasSubstr("Open all TCP ports between the hosts of an island"));
  EXPECT_THAT(log_.str(), HasSubstr("waits for rank 0 to answer at the port that it chose"));
}

TEST_F(ReachTest, AClosedPortIsWaitedForAndNamedInTheEnd) {
  const MonoTime begin = SteadyNow();
  const absl::Status reached = Form(absl::StrCat(kThisHost, "|", FreePort()), Seconds(0.5));
  EXPECT_GT(SteadyNow() - begin, Seconds(5));
  EXPECT_TRUE(absl::IsUnavailable(reached)) << reached;
  EXPECT_THAT(std::string(reached.message()), HasSubstr("Connection refused"));
  EXPECT_THAT(std::string(reached.message()), HasSubstr("end it, or the one that has its rank"));
  EXPECT_THAT(log_.str(), HasSubstr("waits for rank 0 to take ranks again"));
}

/// The next frame of the next rank that comes.
absl::StatusOr<std::optional<Frame>> FirstFrame(FrameListener& listener, FrameType answer) {
  auto socket = listener.Accept(Seconds(30), Seconds(30));
  if (!socket.ok() || *socket == nullptr) return absl::DeadlineExceededError("nobody came");
  auto said = (*socket)->Receive(Seconds(10));
  EXPECT_TRUE((*socket)->Send(answer, "as the test has it").ok());
  return said;
}

TEST_F(ReachTest, ARankThatComesBackEarlyJoinsTheNextLife) {
  const auto listener = FrameListener::Listen(kThisHost);
  ASSERT_TRUE(listener.ok()) << listener.status();
  next_announced_ = absl::StrCat(kThisHost, "|", (*listener)->port());
  absl::StatusOr<std::optional<Frame>> said = std::nullopt;
  const std::jthread first([&] { said = FirstFrame(**listener, FrameType::kRefusal); });
  const absl::Status reached = Form(absl::StrCat(kThisHost, "|", FreePort()), Seconds(20));
  EXPECT_TRUE(absl::IsInvalidArgument(reached)) << reached;
  ASSERT_TRUE(said.ok() && said->has_value()) << said.status() << log_.str();
  EXPECT_EQ((*said)->type, FrameType::kHello);
}

TEST_F(ReachTest, ARank0ThatEndsBeforeAllRanksAreThereIsWaitedFor) {
  const auto listener = FrameListener::Listen(kThisHost);
  ASSERT_TRUE(listener.ok()) << listener.status();
  absl::StatusOr<std::optional<Frame>> said = std::nullopt;
  const std::jthread first([&] {
    { const auto ends = (*listener)->Accept(Seconds(30), Seconds(30)); }
    said = FirstFrame(**listener, FrameType::kRefusal);
  });
  const absl::Status reached = Form(absl::StrCat(kThisHost, "|", (*listener)->port()), Seconds(20));
  EXPECT_TRUE(absl::IsInvalidArgument(reached)) << reached;
  ASSERT_TRUE(said.ok() && said->has_value()) << said.status() << log_.str();
  EXPECT_THAT(log_.str(), HasSubstr("rank 0 ended before all ranks were there; waits for its next life"));
}

TEST_F(ReachTest, ARank0ThatStaysAwayIsNamed) {
  const auto listener = FrameListener::Listen(kThisHost);
  ASSERT_TRUE(listener.ok()) << listener.status();
  std::jthread first([&](const std::stop_token& done) {
    while (!done.stop_requested()) (void)(*listener)->Accept(Seconds(0.1), Seconds(30));
  });
  const absl::Status reached = Form(absl::StrCat(kThisHost, "|", (*listener)->port()), Seconds(0.5));
  EXPECT_TRUE(absl::IsUnavailable(reached)) << reached;
  EXPECT_THAT(std::string(reached.message()), HasSubstr("rank 0 at 0.0.0.0:"));
  EXPECT_THAT(std::string(reached.message()), HasSubstr("see its log, and start it again"));
}

TEST_F(ReachTest, AnAddressThatMeansNothingIsNoRank0) {
  const MonoTime begin = SteadyNow();
  const absl::Status reached = Form("neither a host nor a port", Seconds(20));
  EXPECT_GE(SteadyNow() - begin, Seconds(14)) << "a store that has ended may show it, too";
  EXPECT_TRUE(absl::IsUnavailable(reached)) << reached;
  EXPECT_THAT(std::string(reached.message()), HasSubstr("it has no address of rank 0"));
}

TEST_F(ReachTest, ALoopbackAddressOfRank0IsNamedWithTheRemedy) {
  const absl::Status reached = Form(absl::StrCat("127.0.0.1|", FreePort()), Seconds(5));
  EXPECT_TRUE(absl::IsUnavailable(reached)) << reached;
  EXPECT_THAT(std::string(reached.message()), HasSubstr("Connection refused"));
  EXPECT_THAT(
      std::string(reached.message()),
      HasSubstr("Rank 0 was started with the address 127.0.0.1, which does not mean its host here. Give "
                "all ranks an address of rank 0's host that the others reach, as this one has: 0.0.0.0"));
  EXPECT_THAT(std::string(reached.message()), Not(HasSubstr("TCP ports")));
}

TEST_F(ReachTest, ANameThatOnlyRank0KnowsIsNamedToo) {
  const absl::Status reached = Form("no-such-host.invalid|1", Seconds(5));
  EXPECT_TRUE(absl::IsUnavailable(reached)) << reached;
  EXPECT_THAT(std::string(reached.message()), HasSubstr("cannot look up no-such-host.invalid"));
  EXPECT_THAT(std::string(reached.message()), HasSubstr("which does not mean its host here"));
}

}  // namespace
}  // namespace atl

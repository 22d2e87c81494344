#include "server/rpc/connection_limiter.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace atl {
namespace {

using Verdict = ConnectionLimiter::Verdict;

class ConnectionLimiterTest : public ::testing::Test {
 protected:
  Verdict Admit(int fd, const std::string& host) {
    return limiter_.Admit({.fd = fd, .cookie = static_cast<uint64_t>(fd), .host = host}, now_);
  }
  void Pass(double seconds) { now_ += Seconds(seconds); }

  std::set<int> gone_;
  int looks_ = 0;
  MonoTime now_{};
  ConnectionLimiter limiter_{{.total = 4, .per_address = 3}, [this](const OpenSocket& socket) {
                               ++looks_;
                               return !gone_.contains(socket.fd);
                             }};
};

TEST_F(ConnectionLimiterTest, OneAddressLeavesRoomForOthers) {
  for (int fd = 0; fd < 3; ++fd) EXPECT_EQ(Admit(fd, "10.0.0.1"), Verdict::kAdmitted);
  EXPECT_EQ(Admit(3, "10.0.0.1"), Verdict::kTooManyOfAddress);
  EXPECT_EQ(Admit(4, "10.0.0.2"), Verdict::kAdmitted);
  EXPECT_EQ(Admit(5, "10.0.0.3"), Verdict::kTooMany);
}

TEST_F(ConnectionLimiterTest, WhatIsGoneMakesRoom) {
  for (int fd = 0; fd < 3; ++fd) EXPECT_EQ(Admit(fd, "10.0.0.1"), Verdict::kAdmitted);
  gone_ = {0, 2};
  EXPECT_EQ(Admit(3, "10.0.0.1"), Verdict::kAdmitted);
  EXPECT_EQ(limiter_.Count(now_), 2U);
}

TEST_F(ConnectionLimiterTest, TellsWhoEndedWithoutACall) {
  ConnectionProgress progress;
  for (int fd = 0; fd < 3; ++fd) {
    const std::string peer = "10.0.0.1:" + std::to_string(fd);
    limiter_.Admit({.fd = fd,
                    .cookie = static_cast<uint64_t>(fd),
                    .host = "10.0.0.1",
                    .peer = peer,
                    .signs = progress.Open(peer)},
                   now_);
  }
  progress.Find("10.0.0.1:1")->moved = true;
  EXPECT_TRUE(limiter_.TakeViolations([](int) { return uint64_t{0}; }, {}, {}).empty());
  progress.Find("10.0.0.1:2")->moved = true;  // and not looked at before it is gone
  gone_ = {0, 1, 2};
  EXPECT_EQ(limiter_.Count(now_), 0u);
  EXPECT_EQ(limiter_.TakeUnheard(), std::vector<std::string>{"10.0.0.1:0"});
  EXPECT_TRUE(limiter_.TakeUnheard().empty());
}

TEST_F(ConnectionLimiterTest, AFloodDoesNotBuyMoreLooks) {
  for (int fd = 0; fd < 3; ++fd) Admit(fd, "10.0.0.1");
  EXPECT_EQ(looks_, 0) << "nobody looks while there is room";
  for (int fd = 10; fd < 1000; ++fd) EXPECT_EQ(Admit(fd, "10.0.0.1"), Verdict::kTooManyOfAddress);
  EXPECT_EQ(looks_, 3) << "one look at three connections";
  gone_ = {1};
  EXPECT_EQ(Admit(1000, "10.0.0.1"), Verdict::kTooManyOfAddress) << "not looked again yet";
  Pass(0.2);
  EXPECT_EQ(Admit(1001, "10.0.0.1"), Verdict::kAdmitted);
}

TEST_F(ConnectionLimiterTest, TheOldestOfTheAddressWithMostMakesRoom) {
  EXPECT_EQ(limiter_.ForgetOldest(), -1);
  EXPECT_EQ(Admit(1, "10.0.0.1"), Verdict::kAdmitted);
  for (int fd = 2; fd < 5; ++fd) EXPECT_EQ(Admit(fd, "10.0.0.2"), Verdict::kAdmitted);
  gone_ = {2};
  EXPECT_EQ(limiter_.ForgetOldest(), 3) << "2 is gone already, 1 is the only one of its address";
  EXPECT_EQ(Admit(5, "10.0.0.2"), Verdict::kAdmitted);
}

class GreedyConnectionTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kEnough = ConnectionLimiter::kCountAfterBytes;

  static std::string Peer(int fd) { return "10.0.0.1:" + std::to_string(fd); }
  ConnectionProgress::Signs Open(int fd, const std::string& host = "10.0.0.1") {
    auto signs = progress_.Open(Peer(fd));
    EXPECT_EQ(
        limiter_.Admit(
            {.fd = fd, .cookie = static_cast<uint64_t>(fd), .host = host, .peer = Peer(fd), .signs = signs},
            {}),
        Verdict::kAdmitted);
    return signs;
  }
  std::vector<int> TakeViolations() {
    std::vector<int> fds;
    const auto received = [this](int fd) { return received_[fd]; };
    const auto count = [this](const std::vector<std::string>& peers) {
      std::vector<uint64_t> counts;
      for (const std::string& peer : peers) counts.push_back(streams_[peer]);
      counted_ += static_cast<int>(peers.size());
      ever_counted_.insert(peers.begin(), peers.end());
      return counts;
    };
    for (const auto& [fd, of] : limiter_.TakeViolations(received, count, now_)) fds.push_back(fd);
    return fds;
  }

  std::map<int, uint64_t> received_;
  std::map<std::string, uint64_t> streams_;
  std::set<int> closed_;
  MonoTime now_{};
  int counted_ = 0;
  std::set<std::string> ever_counted_;
  ConnectionProgress progress_;
  ConnectionLimiter limiter_{{.silent_bytes = 100,
                              .all_silent_bytes = 200,
                              .held_bytes = 1000,
                              .all_held_bytes = 1500,
                              .open_streams = 10,
                              .all_open_streams = 25},
                             [this](const OpenSocket& socket) { return !closed_.contains(socket.fd); }};
};

TEST_F(GreedyConnectionTest, BytesWithoutACallEndAConnection) {
  const auto flag = Open(1);
  received_[1] = 100;
  EXPECT_TRUE(TakeViolations().empty());
  received_[1] = 101;
  EXPECT_EQ(TakeViolations(), std::vector<int>{1});
  received_[1] = 1000;
  EXPECT_TRUE(TakeViolations().empty()) << "it is forgotten";
}

TEST_F(GreedyConnectionTest, AMessageMakesRoomForMore) {
  Open(1);
  for (int i = 1; i < 100; ++i) {
    received_[1] += 90;
    progress_.Find("10.0.0.1:1")->moved = true;
    EXPECT_TRUE(TakeViolations().empty());
  }
  received_[1] += 101;
  EXPECT_EQ(TakeViolations(), std::vector<int>{1});
}

TEST_F(GreedyConnectionTest, ASlowServerIsNotTheSendersFault) {
  const auto signs = Open(1);
  {
    const HeldMessage message(signs);
    EXPECT_TRUE(TakeViolations().empty());
    received_[1] = 1000;
    EXPECT_TRUE(TakeViolations().empty()) << "it has a message here that nobody has worked on yet";
  }
  EXPECT_TRUE(TakeViolations().empty()) << "now it has moved";
  received_[1] += 101;
  EXPECT_EQ(TakeViolations(), std::vector<int>{1});
}

TEST_F(GreedyConnectionTest, WhatFillsWhileTheServerIsSlowIsBoundedToo) {
  const HeldMessage one(Open(1));
  const HeldMessage two(Open(2));
  EXPECT_TRUE(TakeViolations().empty());
  received_ = {{1, 600}, {2, 901}};
  EXPECT_EQ(TakeViolations(), std::vector<int>{2});
  received_[1] = 1001;
  EXPECT_EQ(TakeViolations(), std::vector<int>{1});
}

TEST_F(GreedyConnectionTest, AFloodOfStreamsEndsAConnection) {
  Open(1);
  Open(2);
  received_ = {{1, kEnough}, {2, kEnough}};
  for (const int fd : {1, 2}) progress_.Find(Peer(fd))->moved = true;
  streams_ = {{Peer(1), 10}, {Peer(2), 11}};
  EXPECT_EQ(TakeViolations(), std::vector<int>{2}) << "though it moves";
}

TEST_F(GreedyConnectionTest, OfAllTogetherThoseWithTheMostStreamsGoFirst) {
  for (const auto& [fd, count] : {std::pair(1, 9), std::pair(2, 10), std::pair(3, 7)}) {
    const auto signs = Open(fd);
    signs->moved = true;
    received_[fd] = kEnough;
    streams_[Peer(fd)] = count;
  }
  EXPECT_EQ(TakeViolations(), std::vector<int>{2});
}

TEST_F(GreedyConnectionTest, StreamsAreCountedWhereSomethingComes) {
  const auto signs = Open(1);
  received_[1] = kEnough - 1;
  signs->moved = true;
  TakeViolations();
  EXPECT_EQ(counted_, 0);
  received_[1] = kEnough;
  signs->moved = true;
  streams_[Peer(1)] = 2;
  TakeViolations();
  EXPECT_EQ(counted_, 1);
  TakeViolations();
  EXPECT_EQ(counted_, 2) << "it had more than an eighth of what it may have";
  streams_[Peer(1)] = 1;
  TakeViolations();
  TakeViolations();
  EXPECT_EQ(counted_, 3) << "and then no more";
}

TEST_F(GreedyConnectionTest, OfManyThoseThatWereNotCountedLongestAreCounted) {
  constexpr int kOpen = 600;
  for (int fd = 0; fd < kOpen; ++fd) Open(fd);
  for (int look = 1; look <= 2; ++look) {
    for (int fd = 0; fd < kOpen; ++fd) {
      progress_.Find(Peer(fd))->moved = true;
      received_[fd] += kEnough;
    }
    TakeViolations();
    EXPECT_EQ(counted_, look * static_cast<int>(ConnectionLimiter::kMostCounted));
  }
  EXPECT_EQ(ever_counted_.size(), size_t{kOpen});
}

TEST_F(GreedyConnectionTest, LooksAreOftenerWhereThereIsSomethingToSee) {
  EXPECT_EQ(limiter_.UntilNextLook(), Seconds(0.01));
  Open(1);
  received_[1] = 13;  // more than an eighth
  EXPECT_TRUE(TakeViolations().empty());
  EXPECT_EQ(limiter_.UntilNextLook(), Seconds(0.002));
  for (int fd = 2; fd <= 2000; ++fd) Open(fd);
  EXPECT_EQ(limiter_.UntilNextLook(), Seconds(0.02));
}

TEST_F(GreedyConnectionTest, OfAllTogetherTheGreediestGoFirst) {
  for (const int fd : {1, 2, 3, 4}) Open(fd);
  received_ = {{1, 40}, {2, 90}, {3, 95}, {4, 30}};
  EXPECT_EQ(TakeViolations(), std::vector<int>{3});
}

TEST_F(GreedyConnectionTest, OfAllTogetherTheGreediestAddressGoesFirst) {
  for (const int fd : {1, 2, 3, 4, 5}) Open(fd, fd == 1 ? "10.0.0.9" : "10.0.0.1");
  // One honest client in the middle of a message, and a crowd of which none has more.
  received_ = {{1, 95}, {2, 40}, {3, 41}, {4, 42}, {5, 43}};
  EXPECT_EQ(TakeViolations(), (std::vector<int>{5, 4}));
}

TEST_F(GreedyConnectionTest, ThoseThatCallsCameOfGoLast) {
  // All at one address, as behind a NAT: the honest ones are in the middle of a message.
  for (const int fd : {1, 2}) Open(fd)->moved = true;
  for (const int fd : {3, 4, 5}) Open(fd);
  EXPECT_TRUE(TakeViolations().empty());
  received_ = {{1, 80}, {2, 70}, {3, 60}, {4, 50}, {5, 40}};
  EXPECT_EQ(TakeViolations(), (std::vector<int>{3, 4}));
  received_[1] = 100;
  received_[2] = 100;
  received_[5] = 100;
  EXPECT_EQ(TakeViolations(), std::vector<int>{5});
}

TEST_F(GreedyConnectionTest, WhatWasEndedCountsUntilItIsClosed) {
  for (const int fd : {1, 2}) Open(fd);
  received_ = {{1, 101}, {2, 150}};
  EXPECT_EQ(limiter_.EndingBytes(now_), 0u);
  EXPECT_EQ(TakeViolations().size(), 2u);
  EXPECT_EQ(limiter_.EndingBytes(now_), 251u);
  closed_.insert(1);
  EXPECT_EQ(limiter_.EndingBytes(now_), 150u);
  now_ += ConnectionLimiter::kLongestEnding + Seconds(1);
  EXPECT_EQ(limiter_.EndingBytes(now_), 0u)
      << "whoever serves it and never closes it keeps nobody out for ever";
}

TEST_F(GreedyConnectionTest, WhatWasEndedTakesTheRoomOfStrangers) {
  const auto useful = Open(1, "10.0.0.9");
  useful->moved = true;
  for (const int fd : {2, 3, 4}) Open(fd);
  EXPECT_TRUE(TakeViolations().empty());
  received_ = {{1, 90}, {2, 101}, {3, 40}, {4, 20}};
  EXPECT_EQ(TakeViolations(), std::vector<int>{2});
  // 101 of 200 are still taken: 99 are left for those that no call came of.
  received_[3] = 70;
  received_[4] = 30;
  EXPECT_EQ(TakeViolations(), std::vector<int>{3});
  EXPECT_TRUE(limiter_.Full(now_));
  // A quarter is always left, and the useful one is not touched.
  received_[4] = 50;
  EXPECT_TRUE(TakeViolations().empty());
  closed_ = {2, 3};
  received_[4] = 100;
  EXPECT_TRUE(TakeViolations().empty());
  EXPECT_FALSE(limiter_.Full(now_));
}

TEST(ConnectionProgressTest, ForgetsConnectionsThatAreGone) {
  ConnectionProgress progress;
  for (int i = 0; i < 1000; ++i) progress.Open("10.0.0.1:" + std::to_string(i));
  EXPECT_EQ(progress.Find("10.0.0.1:7"), nullptr);
  const auto kept = progress.Open("10.0.0.1:7");
  EXPECT_EQ(progress.Find("10.0.0.1:7"), kept);
}

TEST(IsStillOpenTest, AnotherFileUnderTheNumberIsNotTheSocket) {
  EXPECT_FALSE(IsStillOpen({.fd = -1, .cookie = 0, .host = ""}));
  EXPECT_FALSE(IsStillOpen({.fd = 0, .cookie = 1, .host = ""}));
}

}  // namespace
}  // namespace atl

#include "server/rpc/connection_ledger.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace atoll {
namespace {

using Verdict = ConnectionLedger::Verdict;

class ConnectionLedgerTest : public ::testing::Test {
 protected:
  Verdict Admit(int fd, const std::string& host) {
    return ledger_.Admit({.fd = fd, .cookie = static_cast<uint64_t>(fd), .host = host}, now_);
  }
  void Pass(double seconds) { now_ += Seconds(seconds); }

  std::set<int> gone_;
  int looks_ = 0;
  MonoTime now_{};
  ConnectionLedger ledger_{{.total = 4, .per_address = 3}, [this](const OpenSocket& socket) {
                             ++looks_;
                             return !gone_.contains(socket.fd);
                           }};
};

TEST_F(ConnectionLedgerTest, OneAddressLeavesRoomForOthers) {
  for (int fd = 0; fd < 3; ++fd) EXPECT_EQ(Admit(fd, "10.0.0.1"), Verdict::kAdmitted);
  EXPECT_EQ(Admit(3, "10.0.0.1"), Verdict::kTooManyOfAddress);
  EXPECT_EQ(Admit(4, "10.0.0.2"), Verdict::kAdmitted);
  EXPECT_EQ(Admit(5, "10.0.0.3"), Verdict::kTooMany);
}

TEST_F(ConnectionLedgerTest, WhatIsGoneMakesRoom) {
  for (int fd = 0; fd < 3; ++fd) EXPECT_EQ(Admit(fd, "10.0.0.1"), Verdict::kAdmitted);
  gone_ = {0, 2};
  EXPECT_EQ(Admit(3, "10.0.0.1"), Verdict::kAdmitted);
  EXPECT_EQ(ledger_.Count(now_), 2U);
}

TEST_F(ConnectionLedgerTest, AFloodDoesNotBuyMoreLooks) {
  for (int fd = 0; fd < 3; ++fd) Admit(fd, "10.0.0.1");
  EXPECT_EQ(looks_, 0) << "nobody looks while there is room";
  for (int fd = 10; fd < 1000; ++fd) EXPECT_EQ(Admit(fd, "10.0.0.1"), Verdict::kTooManyOfAddress);
  EXPECT_EQ(looks_, 3) << "one look at three connections";
  gone_ = {1};
  EXPECT_EQ(Admit(1000, "10.0.0.1"), Verdict::kTooManyOfAddress) << "not looked again yet";
  Pass(0.2);
  EXPECT_EQ(Admit(1001, "10.0.0.1"), Verdict::kAdmitted);
}

class GreedyConnectionTest : public ::testing::Test {
 protected:
  ConnectionProgress::Signs Open(int fd) {
    auto signs = progress_.Open("10.0.0.1:" + std::to_string(fd));
    EXPECT_EQ(ledger_.Admit(
                  {.fd = fd, .cookie = static_cast<uint64_t>(fd), .host = "10.0.0.1", .signs = signs}, {}),
              Verdict::kAdmitted);
    return signs;
  }
  std::vector<int> Greedy() {
    std::vector<int> fds;
    for (const auto& [fd, of] : ledger_.Greedy([this](int fd) { return received_[fd]; })) {
      fds.push_back(fd);
    }
    return fds;
  }

  std::map<int, uint64_t> received_;
  ConnectionProgress progress_;
  ConnectionLedger ledger_{
      {.silent_bytes = 100, .all_silent_bytes = 200, .held_bytes = 1000, .all_held_bytes = 1500},
      [](const OpenSocket&) { return true; }};
};

TEST_F(GreedyConnectionTest, BytesWithoutACallEndAConnection) {
  const auto flag = Open(1);
  received_[1] = 100;
  EXPECT_TRUE(Greedy().empty());
  received_[1] = 101;
  EXPECT_EQ(Greedy(), std::vector<int>{1});
  received_[1] = 1000;
  EXPECT_TRUE(Greedy().empty()) << "it is forgotten";
}

TEST_F(GreedyConnectionTest, AMessageMakesRoomForMore) {
  Open(1);
  for (int i = 1; i < 100; ++i) {
    received_[1] += 90;
    progress_.Find("10.0.0.1:1")->moved = true;
    EXPECT_TRUE(Greedy().empty());
  }
  received_[1] += 101;
  EXPECT_EQ(Greedy(), std::vector<int>{1});
}

TEST_F(GreedyConnectionTest, ASlowServerIsNotTheSendersFault) {
  const auto signs = Open(1);
  {
    const HeldMessage message(signs);
    EXPECT_TRUE(Greedy().empty());
    received_[1] = 1000;
    EXPECT_TRUE(Greedy().empty()) << "it has a message here that nobody has worked on yet";
  }
  EXPECT_TRUE(Greedy().empty()) << "now it has moved";
  received_[1] += 101;
  EXPECT_EQ(Greedy(), std::vector<int>{1});
}

TEST_F(GreedyConnectionTest, WhatFillsWhileTheServerIsSlowIsBoundedToo) {
  const HeldMessage one(Open(1));
  const HeldMessage two(Open(2));
  EXPECT_TRUE(Greedy().empty());
  received_ = {{1, 600}, {2, 901}};
  EXPECT_EQ(Greedy(), std::vector<int>{2});
  received_[1] = 1001;
  EXPECT_EQ(Greedy(), std::vector<int>{1});
}

TEST_F(GreedyConnectionTest, AFloodOfCallsEndsAConnectionAndABurstDoesNot) {
  const auto flood = Open(1);
  const auto burst = Open(2);
  for (int look = 1; look <= 4; ++look) {
    if (look <= 2) flood->calls += 1500;
    burst->calls += look % 2 == 0 ? 299 : 2'999;
    EXPECT_EQ(Greedy(), look != 2 ? std::vector<int>{} : std::vector<int>{1});
  }
  const auto storm = Open(3);
  storm->calls += 3'000;
  EXPECT_EQ(Greedy(), std::vector<int>{3});
}

TEST_F(GreedyConnectionTest, ASlowerFloodTakesMoreLooks) {
  const auto flood = Open(1);
  const auto many = Open(2);
  for (int look = 1; look <= 10; ++look) {
    flood->calls += 300;
    many->calls += 299;
    EXPECT_EQ(Greedy(), look < 10 ? std::vector<int>{} : std::vector<int>{1});
  }
}

TEST_F(GreedyConnectionTest, OfAllTogetherTheGreediestGoFirst) {
  for (const int fd : {1, 2, 3, 4}) Open(fd);
  received_ = {{1, 40}, {2, 90}, {3, 95}, {4, 30}};
  EXPECT_EQ(Greedy(), std::vector<int>{3});
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
}  // namespace atoll

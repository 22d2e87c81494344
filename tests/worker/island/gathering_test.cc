#include "worker/island/gathering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/thread.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

RankFacts FactsOf(uint32_t rank, uint64_t process, uint32_t size) {
  RankFacts facts;
  facts.rank = rank;
  facts.size = size;
  facts.host = "here";
  facts.process = process;
  facts.device = "cpu";
  return facts;
}

/// Rank 0 of an island, and connections to it over TCP.
class GatheringTest : public ::testing::Test {
 protected:
  void Begin(uint32_t size, Gathering::Limits limits = Gathering::Limits()) {
    size_ = size;
    auto listener = FrameListener::Listen("127.0.0.1");
    ASSERT_TRUE(listener.ok()) << listener.status();
    listener_ = *std::move(listener);
    LogOptions to_memory;
    to_memory.stream = &log_;
    gathering_ = std::make_unique<Gathering>(FactsOf(0, 1, size), *Logger::Create(to_memory), limits);
  }

  std::unique_ptr<FrameSocket> Connection() {
    auto socket = FrameSocket::Connect("127.0.0.1", listener_->port(), Seconds(5), Seconds(5));
    EXPECT_TRUE(socket.ok()) << socket.status();
    auto accepted = listener_->Accept(Seconds(5), Seconds(5));
    EXPECT_TRUE(accepted.ok() && *accepted != nullptr) << accepted.status();
    gathering_->Add(*std::move(accepted));
    return *std::move(socket);
  }

  std::unique_ptr<FrameSocket> Process(uint32_t rank, uint64_t process) {
    auto socket = Connection();
    EXPECT_TRUE(socket->Send(FrameType::kHello, EncodeRankFacts(FactsOf(rank, process, size_))).ok());
    return socket;
  }

  /// Looks until `done`, or until it fails.
  absl::Status LookUntil(const std::function<bool()>& done) {
    const MonoTime deadline = SteadyNow() + Seconds(20);
    while (SteadyNow() < deadline) {
      if (absl::Status looked = gathering_->Look(); !looked.ok()) return looked;
      if (done()) return absl::OkStatus();
      SleepThisThread(Seconds(0.005));
    }
    return absl::DeadlineExceededError("it was not so within 20 s");
  }

  static std::string Refusal(FrameSocket& socket) {
    const auto frame = socket.Receive(Seconds(5));
    if (!frame.ok() || !frame->has_value()) return "nothing";
    return (*frame)->type == FrameType::kRefusal ? (*frame)->body : "no refusal";
  }

  uint32_t size_ = 0;
  std::ostringstream log_;
  std::unique_ptr<FrameListener> listener_;
  std::unique_ptr<Gathering> gathering_;
};

TEST_F(GatheringTest, ConnectionsThatSayNothingDelayNoRank) {
  Begin(3, {.greeting = Seconds(3600)});
  std::vector<std::unique_ptr<FrameSocket>> silent;
  // More than there is room for: the oldest ones go.
  for (int i = 0; i < 80; ++i) silent.push_back(Connection());
  const auto one = Process(1, 11);
  EXPECT_EQ(gathering_->Missing(), "ranks 1, 2 of 3");
  EXPECT_TRUE(LookUntil([&] { return gathering_->Missing() == "rank 2 of 3"; }).ok());
  const auto two = Process(2, 12);
  EXPECT_TRUE(LookUntil([&] { return gathering_->complete(); }).ok());
  EXPECT_EQ(gathering_->ReachedAt(), "127.0.0.1");
  EXPECT_EQ(gathering_->Take().size(), 2);
}

TEST_F(GatheringTest, AConnectionThatSaysNothingIsClosed) {
  Begin(2, {.greeting = Seconds(0.05)});
  const auto silent = Connection();
  EXPECT_TRUE(LookUntil([&] { return !silent->Receive(Duration(0)).ok(); }).ok());
}

TEST_F(GatheringTest, ANewProcessTakesThePlaceOfASilentOne) {
  Begin(2, {.silence = Seconds(0.05)});
  const auto frozen = Process(1, 11);
  ASSERT_TRUE(LookUntil([&] { return gathering_->complete(); }).ok());
  const auto again = Process(1, 12);
  EXPECT_TRUE(LookUntil([&] { return !frozen->Receive(Duration(0)).ok(); }).ok());
  EXPECT_TRUE(gathering_->complete());
  EXPECT_THAT(log_.str(), AllOf(HasSubstr("its first process is silent"), HasSubstr("process 11 on here"),
                                HasSubstr("process 12 on here")));
  const auto taken = gathering_->Take();
  ASSERT_EQ(taken.size(), 1);
  ASSERT_TRUE(taken[0]->Send(FrameType::kWelcome, "").ok());
  const auto welcome = again->Receive(Seconds(5));
  ASSERT_TRUE(welcome.ok() && welcome->has_value()) << welcome.status();
  EXPECT_EQ((*welcome)->type, FrameType::kWelcome);
}

TEST_F(GatheringTest, TwoProcessesThatLiveAreBothToldSo) {
  Begin(3, {.silence = Seconds(3600)});
  const auto one = Process(1, 11);
  ASSERT_TRUE(LookUntil([&] { return gathering_->Missing() == "rank 2 of 3"; }).ok());
  const auto other = Process(1, 12);
  // While nobody knows whether the first one lives, nobody is refused.
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(gathering_->Look().ok());
    SleepThisThread(Seconds(0.005));
  }
  ASSERT_TRUE(one->Send(FrameType::kHeartbeat, "").ok());
  const absl::Status looked = LookUntil([] { return false; });
  EXPECT_TRUE(absl::IsInvalidArgument(looked)) << looked;
  EXPECT_THAT(std::string(looked.message()),
              AllOf(HasSubstr("rank 1 is there twice"), HasSubstr("process 11"), HasSubstr("process 12")));
  EXPECT_EQ(Refusal(*one), looked.message());
  EXPECT_EQ(Refusal(*other), looked.message());
}

TEST_F(GatheringTest, AProcessThatHasEndedMayComeAgain) {
  Begin(2);
  auto one = Process(1, 11);
  ASSERT_TRUE(LookUntil([&] { return gathering_->complete(); }).ok());
  one.reset();
  EXPECT_TRUE(LookUntil([&] { return !gathering_->complete(); }).ok());
  EXPECT_THAT(log_.str(), HasSubstr("rank 1 has ended again"));
  const auto again = Process(1, 12);
  EXPECT_TRUE(LookUntil([&] { return gathering_->complete(); }).ok());
}

TEST_F(GatheringTest, WhatDoesNotAgreeIsToldToAll) {
  Begin(3);
  const auto one = Process(1, 11);
  ASSERT_TRUE(LookUntil([&] { return gathering_->Missing() == "rank 2 of 3"; }).ok());
  size_ = 4;
  const auto other = Process(2, 12);
  const absl::Status looked = LookUntil([] { return false; });
  EXPECT_TRUE(absl::IsInvalidArgument(looked)) << looked;
  EXPECT_THAT(std::string(looked.message()), HasSubstr("world size"));
  EXPECT_EQ(Refusal(*one), looked.message());
  EXPECT_EQ(Refusal(*other), looked.message());
}

TEST_F(GatheringTest, AnotherProtocolIsRefusedAndTheIslandWaitsOn) {
  Begin(2);
  const auto other = Connection();
  ASSERT_TRUE(other->Send(FrameType::kHello, "something else").ok());
  ASSERT_TRUE(LookUntil([&] { return log_.str().find("refuses a connection") != std::string::npos; }).ok());
  EXPECT_NE(Refusal(*other), "nothing");
  const auto one = Process(1, 11);
  EXPECT_TRUE(LookUntil([&] { return gathering_->complete(); }).ok());
}

}  // namespace
}  // namespace atl

#include "worker/island/peer_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "worker/island/followers.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

struct Ends {
  std::unique_ptr<FrameSocket> first;  // rank 0's
  std::unique_ptr<FrameSocket> other;
};

Ends Connected() {
  auto listener = FrameListener::Listen("127.0.0.1");
  EXPECT_TRUE(listener.ok()) << listener.status();
  auto other = FrameSocket::Connect("127.0.0.1", (*listener)->port(), Seconds(5), Seconds(5));
  EXPECT_TRUE(other.ok()) << other.status();
  auto first = (*listener)->Accept(Seconds(5), Seconds(5));
  EXPECT_TRUE(first.ok()) << first.status();
  return {.first = *std::move(first), .other = *std::move(other)};
}

/// What a link says when its peer is lost.
struct Loss {
  std::promise<std::string> said;
  PeerLinkOptions OptionsFor(uint32_t rank, Duration timeout) {
    return {.rank = rank,
            .timeout = timeout,
            .on_lost = [this](uint32_t,
                              const absl::Status& cause) { said.set_value(std::string(cause.message())); },
            .on_drain = {}};
  }
};

TEST(FrameSocketTest, FramesComeWhole) {
  const Ends ends = Connected();
  const std::string large(1 << 20, 'x');
  auto sent = std::async(std::launch::async, [&] {
    EXPECT_TRUE(ends.first->Send(FrameType::kCall, large).ok());
    EXPECT_TRUE(ends.first->Send(FrameType::kClose, "").ok());
  });
  const auto call = ends.other->Receive(Seconds(10));
  ASSERT_TRUE(call.ok() && call->has_value());
  EXPECT_EQ((*call)->type, FrameType::kCall);
  EXPECT_EQ((*call)->body, large);
  const auto close = ends.other->Receive(Seconds(10));
  ASSERT_TRUE(close.ok() && close->has_value());
  EXPECT_EQ((*close)->type, FrameType::kClose);
  EXPECT_FALSE(ends.other->Receive(Seconds(0.01))->has_value());
}

TEST(FrameSocketTest, OtherProtocolsAreRefused) {
  const Ends ends = Connected();
  // As a frame, this would be one of type 'x' with a gigabyte.
  ASSERT_TRUE(ends.first->Send(static_cast<FrameType>('x'), "").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(ends.other->Receive(Seconds(5)).status()));
}

TEST(PeerLinkTest, AClosedConnectionIsALossAtOnce) {
  Ends ends = Connected();
  Loss loss;
  PeerLink link(std::move(ends.first), loss.OptionsFor(1, Seconds(60)));
  ends.other.reset();
  EXPECT_THAT(loss.said.get_future().get(), HasSubstr("connection has ended"));
  EXPECT_TRUE(absl::IsUnavailable(link.Next().status()));
  EXPECT_THAT(std::string(link.Next().status().message()), HasSubstr("rank 1 is lost"));
}

TEST(PeerLinkTest, SilenceIsALossAfterTheTimeout) {
  Ends ends = Connected();
  Loss loss;
  const MonoTime begin = SteadyNow();
  const PeerLink link(std::move(ends.first), loss.OptionsFor(1, Seconds(1)));
  EXPECT_THAT(loss.said.get_future().get(), HasSubstr("no sign of life for 1 s"));
  EXPECT_GE(SteadyNow() - begin, Seconds(0.9));
}

TEST(PeerLinkTest, HeartbeatsKeepAnIdleLink) {
  Ends ends = Connected();
  Loss of_first, of_other;
  PeerLink first(std::move(ends.first), of_first.OptionsFor(1, Seconds(0.5)));
  PeerLink other(std::move(ends.other), of_other.OptionsFor(0, Seconds(0.5)));
  EXPECT_EQ(of_first.said.get_future().wait_for(std::chrono::milliseconds(1500)),
            std::future_status::timeout);
  ASSERT_TRUE(first.Send(FrameType::kCall, "do").ok());
  EXPECT_EQ(other.Next()->body, "do");
  first.ExpectEnd();
  other.ExpectEnd();
}

TEST(PeerLinkTest, AnExpectedEndIsNoLoss) {
  Ends ends = Connected();
  Loss loss;
  PeerLink link(std::move(ends.first), loss.OptionsFor(1, Seconds(60)));
  link.ExpectEnd();
  ends.other.reset();
  link.AwaitEnd(Seconds(10));
  EXPECT_EQ(loss.said.get_future().wait_for(std::chrono::milliseconds(0)), std::future_status::timeout);
}

TEST(FollowersTest, TheRankThatFailedByItselfIsNamed) {
  Ends ends = Connected();
  Loss loss, of_other;
  std::vector<std::unique_ptr<PeerLink>> links;
  links.push_back(std::make_unique<PeerLink>(std::move(ends.first), loss.OptionsFor(1, Seconds(60))));
  Followers followers(std::move(links));
  PeerLink other(std::move(ends.other), of_other.OptionsFor(0, Seconds(60)));
  const auto answer = [&](const absl::Status& status) {
    ASSERT_TRUE(followers.Tell({.kind = RankCallKind::kSaveState}).ok());
    const auto call = other.Next();
    ASSERT_TRUE(call.ok());
    EXPECT_EQ(DecodeRankCall(call->body)->kind, RankCallKind::kSaveState);
    ASSERT_TRUE(other.Send(FrameType::kReply, EncodeRankReply({.status = status, .manifest_hash = ""})).ok());
  };
  answer(absl::OkStatus());
  EXPECT_TRUE(followers.Finish(absl::OkStatus()).ok());
  answer(absl::NotFoundError("a file is gone"));
  EXPECT_EQ(followers.Finish(absl::AbortedError("another rank failed")).message(), "rank 1: a file is gone");
  answer(absl::AbortedError("another rank failed"));
  EXPECT_EQ(followers.Finish(absl::NotFoundError("own")).message(), "own");
  other.ExpectEnd();
  followers.Close(0, Seconds(0.01));
  EXPECT_EQ(other.Next()->type, FrameType::kClose);
}

}  // namespace
}  // namespace atl

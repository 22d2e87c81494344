#include "server/snapshot_board.h"

#include <gtest/gtest.h>

namespace atoll {
namespace {

using Outcome = SnapshotBoard::Outcome;

const MonoTime kNow(Seconds(100));

SnapshotPtr MakeVersion(uint64_t version, uint32_t fragment = 0) {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->fragment = FragmentId(fragment);
  snapshot->version = Version(version);
  return snapshot;
}

class SnapshotBoardTest : public testing::Test {
 protected:
  SnapshotBoard::Done Note() {
    return [this](Outcome outcome, const SnapshotPtr& snapshot) {
      ++calls_;
      outcome_ = outcome;
      version_ = snapshot ? snapshot->version : Version(999);
      (void)board_.waiting();  // no lock is held
    };
  }
  uint64_t Wait(std::optional<Version> after, Duration wait = Seconds(10), uint32_t fragment = 0) {
    return board_.Wait(FragmentId(fragment), after, kNow, kNow + wait, Note());
  }

  SnapshotBoard board_{2};
  int calls_ = 0;
  Outcome outcome_ = Outcome::kClosed;
  Version version_;
};

TEST_F(SnapshotBoardTest, AnswersAtOnceWhenItCan) {
  EXPECT_EQ(board_.Head(FragmentId(0)), nullptr);
  board_.Publish(MakeVersion(3));
  Wait(std::nullopt);
  EXPECT_EQ(version_, Version(3));
  Wait(Version(2));
  EXPECT_EQ(calls_, 2);
  Wait(Version(3), Duration(0));
  EXPECT_EQ(outcome_, Outcome::kTimeout) << "who does not want to wait does not";
  EXPECT_EQ(board_.waiting(), 0);
}

TEST_F(SnapshotBoardTest, ACallerAboveTheHeadGetsTheHeadAtOnce) {
  board_.Publish(MakeVersion(5));
  Wait(Version(29));
  EXPECT_EQ(outcome_, Outcome::kSnapshot);
  EXPECT_EQ(version_, Version(5)) << "the data directory was put back: waiting would last for ever";
  board_.Finish(FragmentId(0));
  Wait(Version(29));
  EXPECT_EQ(outcome_, Outcome::kSnapshot);
}

TEST_F(SnapshotBoardTest, AnswersWhenTheVersionComes) {
  Wait(std::nullopt);
  Wait(std::nullopt, Seconds(10), 1);
  EXPECT_EQ(calls_, 0);
  board_.Publish(MakeVersion(0));
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(outcome_, Outcome::kSnapshot);
  EXPECT_EQ(board_.waiting(), 1) << "the other fragment's";
}

TEST_F(SnapshotBoardTest, TimeRunsOut) {
  Wait(std::nullopt);
  board_.Expire(kNow + Seconds(9));
  EXPECT_EQ(calls_, 0);
  board_.Expire(kNow + Seconds(10));
  EXPECT_EQ(outcome_, Outcome::kTimeout);
  EXPECT_EQ(calls_, 1);
  board_.Publish(MakeVersion(0));
  EXPECT_EQ(calls_, 1);
}

TEST_F(SnapshotBoardTest, CancelAnswersOnce) {
  const uint64_t id = Wait(std::nullopt);
  board_.Cancel(id);
  board_.Cancel(id);
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(outcome_, Outcome::kCancelled);
}

TEST_F(SnapshotBoardTest, FinishedIsForThoseWhoHaveTheLast) {
  board_.Publish(MakeVersion(5));
  Wait(Version(5));
  board_.Finish(FragmentId(0));
  EXPECT_EQ(outcome_, Outcome::kFinished);
  Wait(Version(5));
  EXPECT_EQ(outcome_, Outcome::kFinished);
  Wait(Version(4));
  EXPECT_EQ(outcome_, Outcome::kSnapshot) << "the last one is still to be had";
}

TEST_F(SnapshotBoardTest, CloseAnswersEverybodyFromThenOn) {
  Wait(std::nullopt);
  board_.Close();
  EXPECT_EQ(outcome_, Outcome::kClosed);
  Wait(std::nullopt);
  EXPECT_EQ(calls_, 2);
}

TEST_F(SnapshotBoardTest, AVersionTwoBehindIsOutdated) {
  const SnapshotPtr first = MakeVersion(1);
  board_.Publish(first);
  board_.Publish(MakeVersion(2));
  EXPECT_FALSE(first->outdated->load()) << "one behind may be streamed to its end";
  EXPECT_EQ(first.use_count(), 1) << "the board keeps the head only";
  board_.Publish(MakeVersion(3));
  EXPECT_TRUE(first->outdated->load());
}

}  // namespace
}  // namespace atoll

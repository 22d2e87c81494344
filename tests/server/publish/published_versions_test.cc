#include "server/publish/published_versions.h"

#include <gtest/gtest.h>

namespace atl {
namespace {

using Outcome = PublishedVersions::Outcome;

const MonoTime kNow(Seconds(100));

SnapshotPtr MakeVersion(uint64_t version, uint32_t fragment = 0) {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->fragment = FragmentId(fragment);
  snapshot->version = Version(version);
  return snapshot;
}

class PublishedVersionsTest : public testing::Test {
 protected:
  PublishedVersions::Done Note() {
    return [this](Outcome outcome, const SnapshotPtr& snapshot) {
      ++calls_;
      outcome_ = outcome;
      version_ = snapshot ? snapshot->version : Version(999);
      (void)published_versions_.waiting();  // no lock is held
    };
  }
  uint64_t Wait(std::optional<Version> after, Duration wait = Seconds(10), uint32_t fragment = 0) {
    return published_versions_.Wait(FragmentId(fragment), after, kNow, kNow + wait, Note());
  }

  PublishedVersions published_versions_{2};
  int calls_ = 0;
  Outcome outcome_ = Outcome::kClosed;
  Version version_;
};

TEST_F(PublishedVersionsTest, AnswersAtOnceWhenItCan) {
  EXPECT_EQ(published_versions_.Head(FragmentId(0)), nullptr);
  published_versions_.Publish(MakeVersion(3));
  Wait(std::nullopt);
  EXPECT_EQ(version_, Version(3));
  Wait(Version(2));
  EXPECT_EQ(calls_, 2);
  Wait(Version(3), Duration(0));
  EXPECT_EQ(outcome_, Outcome::kTimeout) << "who does not want to wait does not";
  EXPECT_EQ(published_versions_.waiting(), 0);
}

TEST_F(PublishedVersionsTest, ACallerAboveTheHeadGetsTheHeadAtOnce) {
  published_versions_.Publish(MakeVersion(5));
  Wait(Version(29));
  EXPECT_EQ(outcome_, Outcome::kSnapshot);
  EXPECT_EQ(version_, Version(5)) << "the data directory was put back: waiting would last for ever";
  published_versions_.Finish(FragmentId(0));
  Wait(Version(29));
  EXPECT_EQ(outcome_, Outcome::kSnapshot);
}

TEST_F(PublishedVersionsTest, AnswersWhenTheVersionComes) {
  Wait(std::nullopt);
  Wait(std::nullopt, Seconds(10), 1);
  EXPECT_EQ(calls_, 0);
  published_versions_.Publish(MakeVersion(0));
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(outcome_, Outcome::kSnapshot);
  EXPECT_EQ(published_versions_.waiting(), 1) << "the other fragment's";
}

TEST_F(PublishedVersionsTest, TimeRunsOut) {
  Wait(std::nullopt);
  published_versions_.Expire(kNow + Seconds(9));
  EXPECT_EQ(calls_, 0);
  published_versions_.Expire(kNow + Seconds(10));
  EXPECT_EQ(outcome_, Outcome::kTimeout);
  EXPECT_EQ(calls_, 1);
  published_versions_.Publish(MakeVersion(0));
  EXPECT_EQ(calls_, 1);
}

TEST_F(PublishedVersionsTest, CancelAnswersOnce) {
  const uint64_t id = Wait(std::nullopt);
  published_versions_.Cancel(id);
  published_versions_.Cancel(id);
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(outcome_, Outcome::kCancelled);
}

TEST_F(PublishedVersionsTest, FinishedIsForThoseWhoHaveTheLast) {
  published_versions_.Publish(MakeVersion(5));
  Wait(Version(5));
  published_versions_.Finish(FragmentId(0));
  EXPECT_EQ(outcome_, Outcome::kFinished);
  Wait(Version(5));
  EXPECT_EQ(outcome_, Outcome::kFinished);
  Wait(Version(4));
  EXPECT_EQ(outcome_, Outcome::kSnapshot) << "the last one is still to be had";
}

TEST_F(PublishedVersionsTest, CloseAnswersEverybodyFromThenOn) {
  Wait(std::nullopt);
  published_versions_.Close();
  EXPECT_EQ(outcome_, Outcome::kClosed);
  Wait(std::nullopt);
  EXPECT_EQ(calls_, 2);
}

TEST_F(PublishedVersionsTest, KeepsTheHeadOnly) {
  const SnapshotPtr first = MakeVersion(1);
  published_versions_.Publish(first);
  published_versions_.Publish(MakeVersion(2));
  EXPECT_EQ(first.use_count(), 1) << "a version's memory comes back with its last reader";
}

}  // namespace
}  // namespace atl

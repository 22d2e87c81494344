#include "server/rounds/fragment_round.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/rejection.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

const MonoTime kNow(Seconds(100));

class FragmentRoundTest : public testing::Test {
 protected:
  FragmentRoundTest()
      : membership_({}),
        fragment_({.id = FragmentId(0), .slots = {}, .elements = 4096}, Epoch(1), &configs_) {
    for (const char* name : {"a", "b"})
      EXPECT_TRUE(membership_.Join(name, "hash", WorkerRole::kTrainer, kNow).ok());
    fragment_.Open(Version(4), membership_, kNow);
  }
  static ConfigPtr Rules(uint32_t staleness_limit = 0) {
    ConfigSnapshot config;
    config.run.round.start_workers = 2;
    config.run.round.staleness_limit = staleness_limit;
    return std::make_shared<const ConfigSnapshot>(config);
  }
  static Contribution From(const WorkerName& worker, uint64_t base = 4, uint32_t crc = 1) {
    Contribution contribution;
    contribution.key = {
        .epoch = Epoch(1), .fragment = FragmentId(0), .base = Version(base), .worker = worker, .sequence = 0};
    contribution.payload_crc32c = crc;
    return contribution;
  }

  /// As the next version.
  void Configure(const ConfigPtr& rules) {
    ConfigSnapshot config = *rules;
    config.version = configs_.newest()->version + 1;
    configs_.Add(std::make_shared<const ConfigSnapshot>(config));
  }

  RunConfigs configs_{Rules()};
  Membership membership_;
  FragmentRound fragment_;
};

TEST_F(FragmentRoundTest, AnAcceptanceInFlightIsPartOfTheRoundThatCloses) {
  ASSERT_TRUE(fragment_.BeginAccept(From("a")).ok());
  EXPECT_FALSE(fragment_.BeginClose(kNow).has_value()) << "its set is not known yet";
  EXPECT_EQ(ReasonOf(fragment_.BeginAccept(From("b"))), RejectionReason::kStaleBase);
  fragment_.EndAccept(From("a"), /*durable=*/true, kNow);
  const auto closed = fragment_.BeginClose(kNow);
  ASSERT_TRUE(closed.has_value());
  ASSERT_EQ(closed->contributions.size(), 1);
  EXPECT_EQ(closed->contributions.front().key.worker, "a");
}

TEST_F(FragmentRoundTest, AnAcceptanceThatFailsIsNot) {
  ASSERT_TRUE(fragment_.BeginAccept(From("a")).ok());
  (void)fragment_.BeginClose(kNow);
  fragment_.EndAccept(From("a"), /*durable=*/false, kNow);
  EXPECT_TRUE(fragment_.BeginClose(kNow)->contributions.empty());
}

TEST_F(FragmentRoundTest, WhileItIsBeingAcceptedNothingIsSaidOfItsFate) {
  ASSERT_TRUE(fragment_.BeginAccept(From("a")).ok());
  EXPECT_EQ(fragment_.StateOf(Version(4), "a"), PushStage::kPartial);
  EXPECT_TRUE(absl::IsUnavailable(fragment_.BeginAccept(From("a"))));
  (void)fragment_.BeginClose(kNow);
  EXPECT_TRUE(absl::IsUnavailable(fragment_.Check(From("a")).status())) << "not stale: it may yet count";
}

TEST_F(FragmentRoundTest, TheVersionToAdoptIsTheOneThatIsComing) {
  (void)fragment_.BeginClose(kNow);
  const auto rejection = RejectionOf(fragment_.Check(From("a")).status());
  ASSERT_TRUE(rejection.has_value());
  EXPECT_EQ(rejection->metadata.at(kHeadVersionKey), "5");
}

TEST_F(FragmentRoundTest, RemembersWhatWasCommitted) {
  RoundRecord record;
  record.epoch = Epoch(1);
  record.version = Version(5);
  record.contributions = {From("a")};
  fragment_.Committed(record);
  fragment_.Open(Version(5), membership_, kNow);
  EXPECT_EQ(*fragment_.Check(From("a")), Round::Arrival::kDuplicate);
  EXPECT_EQ(ReasonOf(fragment_.Check(From("a", 4, 2)).status()), RejectionReason::kStaleBase)
      << "other content";
  EXPECT_THAT(fragment_.Check(From("a", 4, 2)).status().ToString(),
              HasSubstr("on base version 4 is not the one that counts: another contribution of the worker"));
  EXPECT_EQ(ReasonOf(fragment_.Check(From("b")).status()), RejectionReason::kStaleBase);
  EXPECT_THAT(fragment_.Check(From("b")).status().ToString(),
              HasSubstr("on base version 4 came too late: a newer version is published; adopt version 5"));
  EXPECT_EQ(ReasonOf(fragment_.Check(From("b", 6)).status()), RejectionReason::kUnknownBase);
  EXPECT_EQ(*fragment_.Check(From("b", 5)), Round::Arrival::kAccepted);
}

TEST_F(FragmentRoundTest, WhoComesWhileItClosesMayCountInTheNextRound) {
  Configure(Rules(/*staleness_limit=*/2));
  fragment_.Open(Version(5), membership_, kNow);
  EXPECT_EQ(*fragment_.Check(From("a", 3)), Round::Arrival::kAccepted);
  EXPECT_EQ(ReasonOf(fragment_.Check(From("a", 2)).status()), RejectionReason::kStaleBase);
  (void)fragment_.BeginClose(kNow);
  EXPECT_EQ(*fragment_.Check(From("a", 4)), Round::Arrival::kAccepted) << "it may be uploaded meanwhile";
  EXPECT_TRUE(absl::IsUnavailable(fragment_.BeginAccept(From("a", 4)))) << "and is accepted a moment later";
  EXPECT_EQ(ReasonOf(fragment_.BeginAccept(From("a", 3))), RejectionReason::kStaleBase)
      << "it would be three late by then";
  fragment_.Open(Version(6), membership_, kNow);
  EXPECT_TRUE(fragment_.BeginAccept(From("a", 4)).ok());
}

TEST_F(FragmentRoundTest, WhatWasBegunBeforeARestoreNeverEnters) {
  Configure(Rules(/*staleness_limit=*/100));
  RoundRecord restored;
  restored.epoch = Epoch(1);
  restored.version = Version(5);
  fragment_.Committed(restored);
  fragment_.Open(Version(5), membership_, kNow);
  EXPECT_EQ(ReasonOf(fragment_.Check(From("a", 4)).status()), RejectionReason::kStaleBase);
  EXPECT_EQ(*fragment_.Check(From("a", 5)), Round::Arrival::kAccepted);
}

TEST_F(FragmentRoundTest, ARaisedLimitReachesOnlyAsFarBackAsItIsKnownWhoContributed) {
  RoundRecord record;
  record.epoch = Epoch(1);
  for (uint64_t version = 5; version <= 200; ++version) {
    record.version = Version(version);
    record.contributions = {From("a", version - 1)};
    fragment_.Committed(record);
  }
  Configure(Rules(/*staleness_limit=*/1000));
  fragment_.Open(Version(200), membership_, kNow);
  EXPECT_EQ(ReasonOf(fragment_.Check(From("a", 100)).status()), RejectionReason::kStaleBase)
      << "it did contribute, and would count twice";
  EXPECT_THAT(fragment_.Check(From("a", 100)).status().ToString(),
              HasSubstr("no longer knows who contributed to this base"));
  EXPECT_EQ(*fragment_.Check(From("a", 180)), Round::Arrival::kDuplicate);
  EXPECT_EQ(*fragment_.Check(From("b", 180)), Round::Arrival::kAccepted);
}

TEST_F(FragmentRoundTest, TheExcludedAreLeftOut) {
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(fragment_.BeginAccept(From(name)).ok());
    fragment_.EndAccept(From(name), true, kNow);
  }
  fragment_.Exclude(From("a").key);
  EXPECT_EQ(fragment_.BeginClose(kNow)->contributions.size(), 1);
  fragment_.Open(Version(5), membership_, kNow);
  EXPECT_EQ(ReasonOf(fragment_.Check(From("a")).status()), RejectionReason::kStaleBase)
      << "nor in a later round";
  EXPECT_THAT(fragment_.Check(From("a")).status().ToString(), HasSubstr("was left out of its round"));
}

TEST_F(FragmentRoundTest, ALowerMinimumHoldsAtOnceAndAHigherOneFromTheNextRoundOn) {
  const auto with = [](uint32_t minimum) {
    ConfigSnapshot config = *Rules();
    config.run.round.minimum = minimum;
    return std::make_shared<const ConfigSnapshot>(config);
  };
  Configure(with(3));
  EXPECT_EQ(fragment_.rules().minimum, 1);
  fragment_.Open(Version(5), membership_, kNow);
  EXPECT_EQ(fragment_.rules().minimum, 3);
  Configure(with(2));
  EXPECT_EQ(fragment_.rules().minimum, 2) << "the round that waits for three is why it was lowered";
}

TEST_F(FragmentRoundTest, WhatArrivedIsStillThereWhenItGoesOn) {
  ASSERT_TRUE(fragment_.BeginAccept(From("a")).ok());
  fragment_.EndAccept(From("a"), /*durable=*/true, kNow);
  fragment_.Finish();
  EXPECT_EQ(fragment_.round(), nullptr);
  fragment_.ResumeFinished(membership_, kNow + Seconds(1000));
  ASSERT_NE(fragment_.round(), nullptr);
  EXPECT_TRUE(fragment_.round()->HasArrived("a"));
  EXPECT_EQ(fragment_.round()->View(kNow + Seconds(1001), membership_).started_at, kNow + Seconds(1000))
      << "its deadline counts from here";
}

}  // namespace
}  // namespace atl

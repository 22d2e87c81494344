#include "client/sync/peer_audit.h"

#include <algorithm>
#include <map>

#include "client/sync/rejection.h"
#include "common/signature.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/sync/harness.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const MemberRef kMe{"run-1", Epoch(77), "w1", Incarnation(1)};
constexpr ContentHash kServed{.low = 1, .high = 1};
constexpr ContentHash kOther{.low = 2, .high = 2};

/// Shows what a test signed, two to a page. Nothing else of it is called.
class Showing final : public CoordinatorConnection {
 public:
  absl::StatusOr<JoinedRun> Join(const JoinCall&) override { return absl::InternalError("unused"); }
  absl::StatusOr<HeartbeatReply> Heartbeat(const MemberRef&, const HeartbeatCall&) override {
    return HeartbeatReply{.lease = Seconds(10)};
  }
  absl::Status SeedParameters(const MemberRef&, const Manifest&, std::span<const SeedFragment>) override {
    return absl::InternalError("unused");
  }
  absl::StatusOr<PulledVersion> Pull(const MemberRef&, const PullRequest&, std::span<std::byte>) override {
    return absl::InternalError("unused");
  }
  absl::StatusOr<PushReceipt> Push(const MemberRef&, const PushHeader&, std::span<const std::byte>,
                                   uint64_t) override {
    return absl::InternalError("unused");
  }
  absl::StatusOr<PushStatusReply> GetPushStatus(const MemberRef&, const PushKey&) override {
    return absl::InternalError("unused");
  }
  absl::Status Leave(const MemberRef&, const std::string&) override { return absl::OkStatus(); }
  void CancelPulls() override {}
  void CancelPushes() override {}

  absl::StatusOr<ConfirmationPage> GetConfirmations(const MemberRef&, const ConfirmationQuery& request,
                                                    Duration timeout) override {
    ++calls;
    asked.push_back(request.fragment.value());
    if (clock != nullptr) clock->Advance(std::min(takes, timeout));
    if (!error.ok() || takes > timeout) return error.ok() ? absl::DeadlineExceededError("late") : error;
    ConfirmationPage page;
    for (const auto& [place, one] : shown) {
      const auto& [version, worker] = place;
      const bool behind =
          !request.after.has_value() || place > std::pair(request.after->version, request.after->worker);
      if (version < request.first || version > request.last || !behind) continue;
      if (page.confirmations.size() == 2) {
        const SignedConfirmation& last = page.confirmations.back();
        page.next = {.version = last.confirmation.version, .worker = last.worker};
        break;
      }
      page.confirmations.push_back(one);
    }
    return page;
  }

  std::map<std::pair<Version, WorkerName>, SignedConfirmation> shown;
  absl::Status error;
  int calls = 0;
  std::vector<uint32_t> asked;  // fragments
  FakeClock* clock = nullptr;
  Duration takes{};  // each call
};

class PeerAuditTest : public ::testing::Test {
 protected:
  void Sign(const WorkerName& worker, uint64_t version, const ContentHash& hash) {
    const SigningKey& key = keys_.try_emplace(worker, SigningKey::Generate()).first->second;
    SignedConfirmation one{
        .worker = worker,
        .public_key = key.public_key(),
        .epoch = kMe.epoch,
        .confirmation = {.fragment = FragmentId(0), .version = Version(version), .published = hash}};
    one.confirmation.signature = key.Sign(
        ConfirmationText({.run_id = kMe.run_id, .epoch = kMe.epoch, .worker = worker}, one.confirmation));
    connection_.shown[{Version(version), worker}] = one;
  }
  void Served(PeerAudit& audit, uint64_t version, uint32_t fragment = 0) {
    audit.Signed(kMe, {.fragment = FragmentId(fragment), .version = Version(version), .published = kServed});
  }
  /// As many looks as a version gets.
  absl::Status Compare(PeerAudit& audit) {
    for (int i = 1; i < PeerAudit::kLooks; ++i) EXPECT_TRUE(audit.Compare(kMe).ok()) << "too early";
    return audit.Compare(kMe);
  }

  Showing connection_;
  Harness harness_;
  std::map<WorkerName, SigningKey> keys_;
};

TEST_F(PeerAuditTest, VersionsThatAreLostAreNotComparedWithThoseThatGetTheirNumbers) {
  PeerAudit audit({}, &connection_, harness_.context);
  for (const uint64_t version : {5, 6, 7, 8}) Served(audit, version);
  audit.DropAbove({{FragmentId(0), Version(5), 1, ""}});
  for (const uint64_t version : {6, 7, 8}) Sign("w0", version, kOther);
  EXPECT_TRUE(Compare(audit).ok());
  EXPECT_THAT(harness_.log.str(), Not(HasSubstr("signed other parameters")));
}

TEST_F(PeerAuditTest, GoingBackDoesNotHideWhatWasSeen) {
  PeerAudit audit({}, &connection_, harness_.context);
  for (const uint64_t version : {6, 7}) {
    Served(audit, version);
    Sign("w0", version, kOther);
  }
  ASSERT_TRUE(audit.Compare(kMe).ok()) << "too early";
  audit.DropAbove({{FragmentId(0), Version(5), 1, ""}});
  Sign("w0", 6, kOther);
  Served(audit, 6);
  EXPECT_EQ(ExitCodeOf(Compare(audit)), ExitCode::kUntrusted);
}

TEST_F(PeerAuditTest, IsContentWhileAllSignTheSameInSeveralPages) {
  PeerAudit audit({}, &connection_, harness_.context);
  for (const char* const worker : {"w0", "w1", "w2", "w3", "w4"}) Sign(worker, 1, kServed);
  Served(audit, 1);
  EXPECT_TRUE(Compare(audit).ok());
  EXPECT_EQ(connection_.calls, 3 * PeerAudit::kLooks);
  EXPECT_THAT(harness_.log.str(), HasSubstr("w0,w2,w3,w4"));
  // There is nothing left to ask for.
  EXPECT_TRUE(audit.Compare(kMe).ok());
  EXPECT_EQ(connection_.calls, 3 * PeerAudit::kLooks);
}

TEST_F(PeerAuditTest, StopsWhenOutvotedTwiceAndSaysWhoSignedWhat) {
  PeerAudit audit({}, &connection_, harness_.context);
  Sign("w0", 1, kOther);
  Served(audit, 1);
  EXPECT_TRUE(Compare(audit).ok()) << "once, it may be the other's memory";
  EXPECT_THAT(harness_.log.str(), AllOf(HasSubstr("\"w0\""), HasSubstr("signed other parameters")));
  Sign("w0", 2, kOther);
  Served(audit, 2);
  const absl::Status stops = Compare(audit);
  EXPECT_EQ(ExitCodeOf(stops), ExitCode::kUntrusted);
  EXPECT_EQ(ReactionTo(stops), Reaction::kExit);
  EXPECT_THAT(std::string(stops.message()),
              AllOf(HasSubstr("version 2 of fragment 0 has hash 00000000000000010000000000000001 here"),
                    HasSubstr("'w0' signed 00000000000000020000000000000002")));
}

TEST_F(PeerAuditTest, OneOfManyCannotStopTheOthersUnlessTheyWantTo) {
  PeerAudit audit({}, &connection_, harness_.context);
  PeerAudit strict({.any_difference = true}, &connection_, harness_.context);
  for (uint64_t version = 1; version < 20; ++version) {
    Sign("w0", version, kOther);
    Sign("w2", version, kServed);
    Served(audit, version);
    EXPECT_TRUE(Compare(audit).ok());
  }
  Served(strict, 1);
  EXPECT_EQ(ExitCodeOf(strict.Compare(kMe)), ExitCode::kUntrusted);
}

TEST_F(PeerAuditTest, OneDifferenceNowAndThenIsDamagedMemory) {
  PeerAudit audit({}, &connection_, harness_.context);
  for (uint64_t version = 1; version <= 4 * PeerAudit::kRemembered; ++version) {
    Sign("w0", version, version % PeerAudit::kRemembered == 1 ? kOther : kServed);
    Served(audit, version);
    EXPECT_TRUE(Compare(audit).ok()) << version;
  }
}

TEST_F(PeerAuditTest, AForgedConfirmationStopsAtOnce) {
  PeerAudit audit({}, &connection_, harness_.context);
  Sign("w0", 1, kOther);
  connection_.shown[{Version(1), "w0"}].confirmation.published = kServed;
  Served(audit, 1);
  const absl::Status stops = audit.Compare(kMe);
  EXPECT_EQ(ExitCodeOf(stops), ExitCode::kUntrusted);
  EXPECT_THAT(std::string(stops.message()), HasSubstr("the key beside it did not sign"));
}

TEST_F(PeerAuditTest, InventedWorkersAndKeysDoNotCountBesidePinnedOnes) {
  Sign("w0", 1, kServed);  // by the coordinator, say
  Sign("w7", 1, kServed);
  PeerAudit trusting({}, &connection_, harness_.context);
  Served(trusting, 1);
  EXPECT_TRUE(Compare(trusting).ok());
  PeerAudit pinning({.pinned = {{"w0", SigningKey::Generate().public_key()}}}, &connection_,
                    harness_.context);
  Served(pinning, 1);
  const absl::Status stops = pinning.Compare(kMe);
  EXPECT_EQ(ExitCodeOf(stops), ExitCode::kUntrusted);
  EXPECT_THAT(std::string(stops.message()), HasSubstr("another public key than the one in --peer-keys"));
}

TEST_F(PeerAuditTest, WarnsWhenPinnedWorkersAreNeverShown) {
  PeerAudit audit({.pinned = {{"w0", SigningKey::Generate().public_key()}}}, &connection_, harness_.context);
  for (uint64_t version = 1; version <= PeerAudit::kSilent; ++version) {
    EXPECT_THAT(harness_.log.str(), Not(HasSubstr("may hold their confirmations back")));
    Sign("w9", version, kServed);
    Served(audit, version);
    EXPECT_TRUE(Compare(audit).ok());
  }
  EXPECT_THAT(harness_.log.str(), HasSubstr("may hold their confirmations back"));
}

TEST_F(PeerAuditTest, GoesOnWithoutAnAnswerAndAsksAnOldCoordinatorSeldom) {
  PeerAudit audit({}, &connection_, harness_.context);
  Sign("w0", 1, kOther);
  Served(audit, 1);
  connection_.error = absl::UnavailableError("restarting");
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(audit.Compare(kMe).ok());
  connection_.error = absl::UnimplementedError("no such call");
  EXPECT_TRUE(audit.Compare(kMe).ok());
  const int calls = connection_.calls;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(audit.Compare(kMe).ok());
  EXPECT_EQ(connection_.calls, calls);
  harness_.clock.Advance(PeerAudit::kAskAgain);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(audit.Compare(kMe).ok());
  EXPECT_EQ(connection_.calls, calls + 1);
}

TEST_F(PeerAuditTest, ALookThatGetsNoAnswerEndsWithItsFirstCallWithinAQuarterOfTheLease) {
  PeerAudit audit({}, &connection_, harness_.context);
  for (uint32_t fragment = 0; fragment < 4; ++fragment) Served(audit, 1, fragment);
  connection_.clock = &harness_.clock;
  connection_.takes = Seconds(3600);
  for (const Duration lease : {Seconds(2), Seconds(15), Seconds(600), Duration(0)}) {
    const MonoTime before = harness_.clock.Now();
    EXPECT_TRUE(audit.Compare(kMe, lease).ok());
    const Duration longest = lease == Seconds(2) ? Seconds(0.5) : PeerAudit::kLongestLook;
    EXPECT_EQ(harness_.clock.Now() - before, longest) << ToSeconds(lease);
  }
  EXPECT_EQ(connection_.asked, (std::vector<uint32_t>{0, 1, 2, 3})) << "another one first each time";
}

TEST_F(PeerAuditTest, SlowAnswersAreSpreadOverSeveralLooksUntilEveryFragmentWasLookedAt) {
  PeerAudit audit({}, &connection_, harness_.context);
  for (uint32_t fragment = 0; fragment < 5; ++fragment) Served(audit, 1, fragment);
  connection_.clock = &harness_.clock;
  connection_.takes = Seconds(1.5);
  for (int look = 0; look < 5; ++look) {
    const MonoTime before = harness_.clock.Now();
    EXPECT_TRUE(audit.Compare(kMe, Seconds(15)).ok());
    EXPECT_LE(harness_.clock.Now() - before, PeerAudit::kLongestLook);
  }
  EXPECT_EQ(connection_.asked, (std::vector<uint32_t>{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}));
}

TEST_F(PeerAuditTest, ComparesAgainAfterAProxyAnsweredForTheCoordinator) {
  for (const bool rejoins : {false, true}) {
    PeerAudit audit({.any_difference = true}, &connection_, harness_.context);
    Sign("w0", 1, kOther);
    Served(audit, 1);
    connection_.error = absl::UnimplementedError("404 of a proxy");
    EXPECT_TRUE(audit.Compare(kMe).ok());
    connection_.error = absl::OkStatus();
    MemberRef me = kMe;
    if (rejoins) {
      me.incarnation = Incarnation(2);
    } else {
      harness_.clock.Advance(PeerAudit::kAskAgain);
    }
    EXPECT_EQ(ExitCodeOf(audit.Compare(me)), ExitCode::kUntrusted) << rejoins;
  }
}

TEST_F(PeerAuditTest, AnEpochBeginsAnew) {
  PeerAudit audit({}, &connection_, harness_.context);
  Sign("w0", 1, kOther);
  Served(audit, 1);
  MemberRef later = kMe;
  later.epoch = Epoch(78);
  EXPECT_TRUE(audit.Compare(later).ok());
  EXPECT_EQ(connection_.calls, 0) << "what was served before the restore says nothing now";
}

TEST_F(PeerAuditTest, TheWorkerStopsWhateverTheCoordinatorAnswersThen) {
  PeerAudit audit({.any_difference = true}, &connection_, harness_.context);
  bool told = false;
  Heartbeater heartbeater(
      &connection_, harness_.context, [&] { told = true; }, &audit);
  harness_.worker_status.SetMember(kMe, false);
  EXPECT_TRUE(heartbeater.Beat().ok());
  EXPECT_FALSE(told);
  Sign("w0", 1, kOther);
  Served(audit, 1);
  EXPECT_TRUE(heartbeater.Beat().ok());
  EXPECT_TRUE(told);
  EXPECT_TRUE(heartbeater.Beat().ok());
  EXPECT_EQ(ExitCodeOf(harness_.worker_status.commands().membership), ExitCode::kUntrusted);
}

}  // namespace
}  // namespace atl

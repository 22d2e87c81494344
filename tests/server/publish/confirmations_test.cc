#include "server/publish/confirmations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/content_hash.h"
#include "common/signature.h"
#include "tests/server/test_run.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

const ConfirmationAuthor kAuthor{.run_id = "r", .epoch = Epoch(3), .worker = "a"};
constexpr ContentHash kHash{.low = 1, .high = 2};

Confirmation Signed(const SigningKey& key, const ConfirmationAuthor& author, Version version,
                    const ContentHash& hash) {
  Confirmation confirmation{.fragment = FragmentId(0), .version = version, .published = hash};
  confirmation.signature = key.Sign(ConfirmationText(author, confirmation));
  return confirmation;
}

TEST(JudgeConfirmationTest, TheRightHashByTheRightKeyIsValid) {
  const SigningKey key = SigningKey::Generate();
  const Confirmation good = Signed(key, kAuthor, Version(4), kHash);
  EXPECT_EQ(JudgeConfirmation(kAuthor, key.public_key(), good, kHash), ConfirmationVerdict::kValid);
  EXPECT_EQ(JudgeConfirmation(kAuthor, key.public_key(), good, std::nullopt), ConfirmationVerdict::kUnknown);
  const ContentHash other{.low = 1, .high = 3};
  EXPECT_EQ(JudgeConfirmation(kAuthor, key.public_key(), good, other), ConfirmationVerdict::kDiverged);
}

TEST(JudgeConfirmationTest, NothingInItCanBeChangedAfterwards) {
  const SigningKey key = SigningKey::Generate();
  const Confirmation good = Signed(key, kAuthor, Version(4), kHash);
  const auto judge = [&](const ConfirmationAuthor& author, const Confirmation& confirmation) {
    return JudgeConfirmation(author, key.public_key(), confirmation, kHash);
  };
  Confirmation forged = good;
  forged.version = Version(5);
  EXPECT_EQ(judge(kAuthor, forged), ConfirmationVerdict::kForged);
  forged = good;
  forged.published.low ^= 1;
  EXPECT_EQ(judge(kAuthor, forged), ConfirmationVerdict::kForged);
  forged = good;
  forged.signature[10] = static_cast<char>(forged.signature[10] ^ 1);
  EXPECT_EQ(judge(kAuthor, forged), ConfirmationVerdict::kForged);
  forged.signature.clear();
  EXPECT_EQ(judge(kAuthor, forged), ConfirmationVerdict::kForged);
  for (const ConfirmationAuthor& author :
       {ConfirmationAuthor{"r", Epoch(3), "b"}, ConfirmationAuthor{"r", Epoch(4), "a"},
        ConfirmationAuthor{"s", Epoch(3), "a"}}) {
    EXPECT_EQ(judge(author, good), ConfirmationVerdict::kForged) << "shown as another's";
  }
  EXPECT_EQ(JudgeConfirmation(kAuthor, "", good, kHash), ConfirmationVerdict::kForged) << "no key is known";
  EXPECT_EQ(JudgeConfirmation(kAuthor, SigningKey::Generate().public_key(), good, kHash),
            ConfirmationVerdict::kForged);
}

TEST(ConfirmationsTest, OldVersionsAreForgotten) {
  const std::shared_ptr<MemoryDisk> disk = NewMemoryDisk();
  auto store = OpenMemoryStore(disk);
  ASSERT_TRUE(store.ok());
  Confirmations confirmations(store->get(), Logger());
  for (uint64_t v = 0; v <= Confirmations::kVersionsRemembered; ++v) {
    confirmations.Published(FragmentId(0), Version(v), kHash);
  }
  const SigningKey key = SigningKey::Generate();
  const auto diverged = [&](uint64_t version) {
    const Confirmation wrong = Signed(key, kAuthor, Version(version), {.low = 9, .high = 9});
    return confirmations.Take(kAuthor, key.public_key(), {{wrong}}, MonoTime()).diverged;
  };
  EXPECT_FALSE(diverged(0));
  EXPECT_TRUE(diverged(1));
}

TEST(ConfirmationsTest, OneWorkersDivergencesDoNotFillTheEventLog) {
  const std::shared_ptr<MemoryDisk> disk = NewMemoryDisk();
  auto store = OpenMemoryStore(disk);
  ASSERT_TRUE(store.ok());
  Confirmations confirmations(store->get(), Logger());
  const SigningKey key = SigningKey::Generate();
  std::vector<Confirmation> wrong;
  for (uint64_t v = 0; v < 200; ++v) {
    confirmations.Published(FragmentId(0), Version(v), kHash);
    wrong.push_back(Signed(key, kAuthor, Version(v), {.low = 9, .high = 9}));
  }
  const MonoTime now(Seconds(1000));
  const std::span<const Confirmation> all(wrong);
  const auto told = confirmations.Take(kAuthor, key.public_key(), all.first(199), now);
  EXPECT_TRUE(told.diverged);
  EXPECT_EQ(told.verdicts.size(), 199);
  EXPECT_EQ(told.events.size(), 20);
  EXPECT_TRUE(
      confirmations.Take(kAuthor, key.public_key(), all.first(199), now + Seconds(3600)).events.empty())
      << "no news";
  EXPECT_EQ(confirmations.Take(kAuthor, key.public_key(), all.last(1), now + Seconds(3600)).events.size(), 1);
}

/// A run of two workers that sign, on a coordinator with everything in it.
class ConfirmedRunTest : public ::testing::Test {
 protected:
  MemberRef Join(const WorkerName& name, const SigningKey& key) {
    JoinCall call;
    call.worker = name;
    call.secret = "0123456789abcdef-" + name;
    call.manifest_hash = ManifestHash(SmallManifest());
    call.public_key = key.public_key();
    const auto joined = run_.coordinator().Join(call);
    EXPECT_TRUE(joined.ok()) << joined.status();
    return joined->member;
  }

  static Confirmation Sign(const MemberRef& caller, const SigningKey& key, Version version,
                           const ContentHash& hash) {
    return Signed(key, {caller.run_id, caller.epoch, caller.worker}, version, hash);
  }

  absl::StatusOr<HeartbeatReply> Beat(const MemberRef& caller, std::vector<Confirmation> confirmations) {
    HeartbeatCall call;
    call.confirmations = std::move(confirmations);
    return run_.coordinator().Heartbeat(caller, call);
  }

  std::optional<Version> Confirmed(const WorkerName& name) {
    for (const WorkerView& worker : run_.coordinator().ListWorkers(true)) {
      if (worker.name == name) return worker.confirmed;
    }
    return std::nullopt;
  }

  TestRun run_;
  const SigningKey key_a_ = SigningKey::Generate();
  const SigningKey key_b_ = SigningKey::Generate();
};

TEST_F(ConfirmedRunTest, ARightOneIsCountedAndAWrongOneMeansPullAgain) {
  const MemberRef a = Join("a", key_a_);
  const MemberRef b = Join("b", key_b_);
  const auto seeded = run_.Seed(a, Fill([](size_t i) { return static_cast<float>(i); }));
  ASSERT_TRUE(seeded.ok()) << seeded.status();
  const ContentHash published = seeded->published.front();

  auto answer = Beat(a, {Sign(a, key_a_, Version(0), published)});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->command, WorkerCommand::kNone);
  EXPECT_EQ(Confirmed("a"), Version(0));

  EventCatcher events(&run_.coordinator());
  ContentHash wrong = published;
  wrong.high ^= 1;
  answer = Beat(b, {Sign(b, key_b_, Version(0), wrong)});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->command, WorkerCommand::kResync);
  EXPECT_EQ(Confirmed("b"), std::nullopt);
  const auto event = events.WaitFor(EventKind::kReplicaDiverged);
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->worker, "b");
  EXPECT_EQ(event->version, Version(0));
  for (const ContentHash& hash : {published, wrong}) {
    EXPECT_THAT(event->message, HasSubstr(ToHex(Hash128{.low = hash.low, .high = hash.high})));
  }
  // Until it has pulled.
  EXPECT_EQ(Beat(b, {})->command, WorkerCommand::kResync);
  ASSERT_TRUE(run_.Pull(b).ok());
  EXPECT_EQ(Beat(b, {})->command, WorkerCommand::kNone);
}

TEST_F(ConfirmedRunTest, ADivergenceIsAnnouncedOnce) {
  const MemberRef a = Join("a", key_a_);
  const MemberRef b = Join("b", key_b_);
  const auto seeded = run_.Seed(a, Fill([](size_t i) { return static_cast<float>(i); }));
  ASSERT_TRUE(seeded.ok()) << seeded.status();
  EventCatcher events(&run_.coordinator());
  ContentHash wrong = seeded->published.front();
  wrong.high ^= 1;
  const std::vector<Confirmation> all(256, Sign(b, key_b_, Version(0), wrong));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Beat(b, all)->command, WorkerCommand::kResync);
  EXPECT_EQ(Beat(a, {Sign(a, key_a_, Version(0), wrong)})->command, WorkerCommand::kResync);
  ASSERT_TRUE(run_.coordinator().Leave(b, "enough").ok());
  ASSERT_TRUE(events.WaitFor(EventKind::kWorkerLeft).has_value());
  std::vector<WorkerName> told;
  for (const EventView& event : events.events()) {
    if (event.kind == EventKind::kReplicaDiverged) told.push_back(event.worker);
  }
  EXPECT_THAT(told, testing::ElementsAre("b", "a"));
}

TEST_F(ConfirmedRunTest, WhatAForgottenWorkerConfirmedIsForgotten) {
  const MemberRef a = Join("a", key_a_);
  const MemberRef b = Join("b", key_b_);
  const auto seeded = run_.Seed(a, Fill([](size_t i) { return static_cast<float>(i); }));
  ASSERT_TRUE(seeded.ok()) << seeded.status();
  ASSERT_TRUE(Beat(b, {Sign(b, key_b_, Version(0), seeded->published.front())}).ok());
  ASSERT_EQ(Confirmed("b"), Version(0));
  ASSERT_TRUE(run_.coordinator().Leave(b, "enough").ok());
  ASSERT_TRUE(run_.admin()
                  .ControlWorker({.user = "ann", .peer = "here"},
                                 {.worker = "b", .action = WorkerAction::kForget, .reason = ""})
                  .ok());
  Join("b", key_b_);
  EXPECT_EQ(Confirmed("b"), std::nullopt) << "the name is new";
}

TEST_F(ConfirmedRunTest, AForgedOneChangesNothing) {
  const MemberRef a = Join("a", key_a_);
  const MemberRef b = Join("b", key_b_);
  const auto seeded = run_.Seed(a, Fill([](size_t i) { return static_cast<float>(i); }));
  ASSERT_TRUE(seeded.ok()) << seeded.status();
  // b speaks in a's name, and signs with its own key; then shows what a has signed as its own.
  auto answer = Beat(a, {Sign(a, key_b_, Version(0), {.low = 6, .high = 6})});
  EXPECT_EQ(answer->command, WorkerCommand::kNone);
  answer = Beat(b, {Sign(a, key_a_, Version(0), seeded->published.front())});
  EXPECT_EQ(answer->command, WorkerCommand::kNone);
  EXPECT_EQ(Confirmed("a"), std::nullopt);
  EXPECT_EQ(Confirmed("b"), std::nullopt);
}

TEST_F(ConfirmedRunTest, KeysAndHashesSurviveARestartOfTheCoordinator) {
  const MemberRef a = Join("a", key_a_);
  const MemberRef b = Join("b", key_b_);
  ASSERT_TRUE(run_.Seed(a, Fill([](size_t i) { return static_cast<float>(i); })).ok());
  for (const MemberRef& caller : {a, b}) ASSERT_TRUE(run_.Pull(caller).ok());
  const std::vector<float> delta = Fill([](size_t) { return 0.5F; });
  for (const MemberRef& caller : {a, b}) ASSERT_TRUE(run_.Push(caller, 0, delta).ok());
  const auto pulled = run_.Pull(a, 0);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  const ContentHash published = pulled->snapshot->published;
  ASSERT_TRUE(run_.Restart().ok());
  const auto answer = Beat(a, {Sign(a, key_a_, Version(1), published)});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(Confirmed("a"), Version(1));
  EXPECT_EQ(Beat(b, {Sign(b, key_b_, Version(1), {.low = 6, .high = 6})})->command, WorkerCommand::kResync);
}

TEST_F(ConfirmedRunTest, WhatOthersSignedIsShownInPagesAlsoAfterARestart) {
  const MemberRef a = Join("a", key_a_);
  const MemberRef b = Join("b", key_b_);
  const auto seeded = run_.Seed(a, Fill([](size_t i) { return static_cast<float>(i); }));
  ASSERT_TRUE(seeded.ok()) << seeded.status();
  const ContentHash published = seeded->published.front();
  const ContentHash wrong{.low = 6, .high = 6};
  ASSERT_TRUE(Beat(a, {Sign(a, key_a_, Version(0), published)}).ok());
  // Signed, so it is shown, though it is not what was published: that is what others are to see.
  ASSERT_TRUE(Beat(b, {Sign(b, key_b_, Version(0), wrong)}).ok());
  const auto show = [&](const ConfirmationQuery& query) {
    auto page = run_.coordinator().GetConfirmations(query);
    EXPECT_TRUE(page.ok()) << page.status();
    return *std::move(page);
  };
  for (const char* const when : {"before", "after"}) {
    const ConfirmationPage first = show({.first = Version(0), .last = Version(9), .limit = 1});
    ASSERT_EQ(first.confirmations.size(), 1U) << when;
    EXPECT_EQ(first.run_id, a.run_id);
    EXPECT_EQ(JudgePeer(a.run_id, a.epoch, {{"a", key_a_.public_key()}}, published, first.confirmations[0]),
              PeerFinding::kEqual);
    ASSERT_TRUE(first.next.has_value());
    const ConfirmationPage second =
        show({.first = Version(0), .last = Version(9), .after = first.next, .limit = 1});
    ASSERT_EQ(second.confirmations.size(), 1U) << when;
    EXPECT_EQ(JudgePeer(a.run_id, a.epoch, {{"b", key_b_.public_key()}}, published, second.confirmations[0]),
              PeerFinding::kDifferent);
    EXPECT_FALSE(second.next.has_value());
    if (std::string_view(when) == "before") {
      ASSERT_TRUE(run_.Restart().ok());
    }
  }
  EXPECT_TRUE(show({.first = Version(1), .last = Version(9)}).confirmations.empty());
  EXPECT_TRUE(absl::IsNotFound(run_.coordinator().GetConfirmations({.fragment = FragmentId(7)}).status()));
}

TEST_F(ConfirmedRunTest, WhatAWorkerSignedWithAFormerKeyIsNotShownUnderItsNewOne) {
  const MemberRef a = Join("a", key_a_);
  const auto seeded = run_.Seed(a, Fill([](size_t i) { return static_cast<float>(i); }));
  ASSERT_TRUE(seeded.ok()) << seeded.status();
  ASSERT_TRUE(Beat(a, {Sign(a, key_a_, Version(0), seeded->published.front())}).ok());
  ASSERT_TRUE(run_.Restart().ok());
  Join("a", key_b_);
  const auto page = run_.coordinator().GetConfirmations({.first = Version(0), .last = Version(9)});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_TRUE(page->confirmations.empty());
}

}  // namespace
}  // namespace atl

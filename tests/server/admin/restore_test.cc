#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <iterator>

#include "server/admin/admin_control.h"
#include "server/rejection.h"
#include "tests/server/test_run.h"

// Checkpoints and restores of a run that is being served.

namespace atl {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const AdminCaller kAnn{.user = "ann", .peer = "test"};

float Start(size_t i) { return 0.5F + 0.01F * static_cast<float>(i % 13); }
std::vector<float> DeltaOf(const MemberRef& worker, uint64_t base) {
  return Fill([&](size_t i) {
    return 0.01F * std::sin(static_cast<float>(i + base * 31 + static_cast<size_t>(worker.worker[0])));
  });
}

class RestoreTest : public testing::Test {
 protected:
  void Begin() { workers_ = run_.Begin({"a", "b"}, Fill(Start)); }
  void Round(uint64_t base) {
    for (const MemberRef& worker : workers_) ASSERT_TRUE(run_.Pull(worker).ok());
    for (const MemberRef& worker : workers_) {
      const auto pushed = run_.Push(worker, base, DeltaOf(worker, base));
      ASSERT_TRUE(pushed.ok()) << pushed.status();
    }
    ASSERT_TRUE(run_.Pull(workers_[0], base).ok());
  }
  void JoinAgain() {
    for (MemberRef& worker : workers_) worker = run_.Join(worker.worker);
  }
  AdminControl& admin() { return run_.coordinator().admin(); }
  RestoreResult Restore(const std::string& name) {
    auto restored = admin().RestoreCheckpoint(kAnn, name);
    EXPECT_TRUE(restored.ok()) << restored.status();
    return restored.ok() ? *restored : RestoreResult{};
  }
  std::vector<std::string> CheckpointNames() {
    const auto listed = admin().ListCheckpoints(true);
    EXPECT_TRUE(listed.ok()) << listed.status();
    std::vector<std::string> names;
    if (listed.ok()) std::ranges::transform(*listed, std::back_inserter(names), &CheckpointView::name);
    std::ranges::sort(names);
    return names;
  }
  uint64_t tokens() { return run_.coordinator().GetStatus(0).committed_tokens; }

  TestRun run_;
  std::vector<MemberRef> workers_;
};

TEST_F(RestoreTest, OldContentsBecomeTheNextVersionUnderANewEpoch) {
  Begin();
  Round(0);
  Round(1);
  const std::vector<float> then = run_.Published(workers_[0], 1);
  const uint64_t tokens_then = tokens();
  const auto made = admin().CreateCheckpoint(kAnn, "two");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_THAT(made->versions, ElementsAre(Version(2)));
  for (uint64_t base = 2; base < 5; ++base) Round(base);
  const RestoreResult restored = Restore("two");
  EXPECT_THAT(restored.versions, ElementsAre(Version(6)));
  EXPECT_NE(restored.epoch, workers_[0].epoch);
  EXPECT_EQ(restored.committed_tokens, tokens_then);
  EXPECT_EQ(tokens(), tokens_then);
  ASSERT_TRUE(EventCatcher(&run_.coordinator()).WaitFor(EventKind::kRunRestored).has_value());
  // Nobody of the old epoch gets anything in or out.
  EXPECT_EQ(ReasonOf(run_.Push(workers_[0], 5, DeltaOf(workers_[0], 5)).status()),
            RejectionReason::kWrongEpoch);
  EXPECT_EQ(ReasonOf(run_.Pull(workers_[0]).status()), RejectionReason::kWrongEpoch);
  EXPECT_EQ(ReasonOf(run_.Heartbeat(workers_[0]).status()), RejectionReason::kWrongEpoch);
  JoinAgain();
  EXPECT_EQ(run_.Published(workers_[0], std::nullopt), then);
  EXPECT_EQ(run_.coordinator().GetStatus(1).rounds.front().version, Version(2)) << "3 to 5 are abandoned";
  Round(6);
  EXPECT_EQ(run_.coordinator().GetStatus(10).rounds.size(), 3U);
  // The same goes on after a restart.
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_EQ(run_.coordinator().GetStatus(10).rounds.size(), 3U);
  EXPECT_EQ(run_.coordinator().GetStatus(0).fragments[0].version, Version(7));
  EXPECT_EQ(run_.coordinator().GetStatus(0).epoch, restored.epoch);
  Round(7);
}

TEST_F(RestoreTest, TheRunGoesOnAsItWouldHaveFromThere) {
  // The optimizer's state comes back too: the same contributions give the same bits.
  Begin();
  Round(0);
  Round(1);
  ASSERT_TRUE(admin().CreateCheckpoint(kAnn, "two").ok());
  Round(2);
  const std::vector<float> first = run_.Published(workers_[0], 2);
  (void)Restore("two");
  JoinAgain();
  for (const MemberRef& worker : workers_) ASSERT_TRUE(run_.Pull(worker).ok());
  for (const MemberRef& worker : workers_) ASSERT_TRUE(run_.Push(worker, 4, DeltaOf(worker, 2)).ok());
  EXPECT_EQ(run_.Published(workers_[0], 4), first);
}

TEST_F(RestoreTest, OptimizersThatCountTheirStepsGoOnCounting) {
  // Versions are skipped by a restore, outer steps are not: adam's bias correction and the windows of delayed
  // Nesterov stand where they stood, also after a restart.
  for (const OuterOptimizerKind kind : {OuterOptimizerKind::kAdam, OuterOptimizerKind::kDelayedNesterov}) {
    CoordinatorOptions options = SmallRun();
    options.run.outer.optimizer = kind;
    options.run.outer.delay = 3;
    TestRun run(options);
    std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
    const auto round = [&](uint64_t base, uint64_t seed) {
      for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
      for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, base, DeltaOf(worker, seed)).ok());
      ASSERT_TRUE(run.Pull(workers[0], base).ok());
    };
    round(0, 0);
    ASSERT_TRUE(run.coordinator().admin().CreateCheckpoint(kAnn, "one").ok());
    round(1, 1);
    round(2, 2);
    const std::vector<float> first = run.Published(workers[0], 2);
    ASSERT_TRUE(run.coordinator().admin().RestoreCheckpoint(kAnn, "one").ok());
    for (MemberRef& worker : workers) worker = run.Join(worker.worker);
    round(4, 1);
    ASSERT_TRUE(run.Restart().ok());
    round(5, 2);
    EXPECT_EQ(run.Published(workers[0], 5), first) << static_cast<int>(kind);
  }
}

TEST_F(RestoreTest, WhoWaitsForAVersionIsToldToJoinAgain) {
  Begin();
  Round(0);
  ASSERT_TRUE(admin().CreateCheckpoint(kAnn, "one").ok());
  auto waiting = std::async(std::launch::async, [this] { return run_.Pull(workers_[0], 1).status(); });
  (void)Restore("one");
  EXPECT_EQ(ReasonOf(waiting.get()), RejectionReason::kWrongEpoch);
}

TEST_F(RestoreTest, AcceptedContributionsOfTheOldEpochAreGone) {
  Begin();
  Round(0);
  ASSERT_TRUE(admin().CreateCheckpoint(kAnn, "one").ok());
  ASSERT_TRUE(run_.Pull(workers_[0]).ok());
  ASSERT_TRUE(run_.Push(workers_[0], 1, DeltaOf(workers_[0], 1)).ok());
  (void)Restore("one");
  JoinAgain();
  for (const MemberRef& worker : workers_) ASSERT_TRUE(run_.Pull(worker).ok());
  ASSERT_TRUE(run_.Push(workers_[1], 2, DeltaOf(workers_[1], 2)).ok());
  EXPECT_THAT(run_.coordinator().GetStatus(0).fragments[0].arrived, ElementsAre("b"));
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_THAT(run_.coordinator().GetStatus(0).fragments[0].arrived, ElementsAre("b"));
}

TEST_F(RestoreTest, AFinishedRunLivesAgain) {
  TestRun& run = run_;
  run.options().run.rounds = 2;
  ASSERT_TRUE(run.Restart().ok());
  Begin();
  Round(0);
  ASSERT_TRUE(admin().CreateCheckpoint(kAnn, "one").ok());
  for (uint64_t base = 1; run.coordinator().GetStatus(0).state != RunState::kFinished; ++base) {
    ASSERT_LT(base, 20u);
    Round(base);
  }
  const Version end = run.coordinator().GetStatus(0).fragments[0].version;
  const absl::Status over = admin().ControlRun(kAnn, RunAction::kPause, "").status();
  EXPECT_THAT(std::string(over.message()), HasSubstr("'atollctl checkpoint restore NAME' continues it"));
  (void)Restore("one");
  JoinAgain();
  EXPECT_NE(run.coordinator().GetStatus(0).state, RunState::kFinished);
  Round(end.value() + 1);
}

TEST_F(RestoreTest, ARestoreThatTheDiskRejectsChangesNothing) {
  Begin();
  Round(0);
  ASSERT_TRUE(admin().CreateCheckpoint(kAnn, "one").ok());
  Round(1);
  run_.WaitForStored(2);
  run_.faults().epoch = true;
  EXPECT_EQ(admin().RestoreCheckpoint(kAnn, "one").status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(admin().RestoreCheckpoint(kAnn, "none").status().code(), absl::StatusCode::kNotFound);
  Round(2);
  EXPECT_EQ(run_.coordinator().GetStatus(0).epoch, workers_[0].epoch);
}

TEST_F(RestoreTest, ARestoreWaitsForNoVersionThatTheDiskRejects) {
  Begin();
  Round(0);
  ASSERT_TRUE(admin().CreateCheckpoint(kAnn, "one").ok());
  run_.WaitForStored(1);
  run_.faults().store = true;
  EventCatcher events(&run_.coordinator());
  Round(1);
  ASSERT_TRUE(events.WaitFor(EventKind::kStorageFailing).has_value());
  const absl::Status rejected = admin().RestoreCheckpoint(kAnn, "one").status();
  EXPECT_EQ(rejected.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(rejected.message()),
              AllOf(HasSubstr("version 2 of fragment 0 is committed, but its tensors cannot be written"),
                    HasSubstr("atollctl checkpoint delete")));
  run_.faults().store = false;
  run_.WaitForStored(2);
  Restore("one");
}

TEST_F(RestoreTest, AutomaticCheckpointsAreMadeAndRotated) {
  run_.options().run.checkpoint_every = 2;
  run_.options().run.checkpoint_keep = 2;
  run_.options().run.checkpoint_keep_every = 3;  // every sixth version stays
  run_.options().config_bytes = "config-2";
  ASSERT_TRUE(run_.Restart().ok());
  Begin();
  for (uint64_t base = 0; base < 12; ++base) {
    run_.clock().Advance(Seconds(1));  // they are ordered by time
    Round(base);
    run_.WaitForStored(base + 1);
    if ((base + 1) % 2 == 0) {
      EventCatcher events(&run_.coordinator());
      ASSERT_TRUE(events.WaitFor(EventKind::kCheckpointCreated, (base + 1) / 2 - 1).has_value());
    }
  }
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_THAT(CheckpointNames(), ElementsAre("auto-v10", "auto-v12-kept", "auto-v6-kept", "auto-v8"));
}

TEST_F(RestoreTest, AnOperatorsCheckpointDoesNotBlockTheAutomaticOneOfItsName) {
  run_.options().run.checkpoint_every = 1;
  run_.options().run.checkpoint_keep = 1;
  run_.options().run.checkpoint_keep_every = 2;
  run_.options().config_bytes = "config-2";
  ASSERT_TRUE(run_.Restart().ok());
  Begin();
  for (const char* name : {"auto-v1", "auto-v2-kept", "auto-v2-2-kept"}) {
    ASSERT_TRUE(admin().CreateCheckpoint(kAnn, name).ok()) << name;
  }
  std::optional<EventCatcher> events(std::in_place, &run_.coordinator());
  for (uint64_t base = 0; base < 3; ++base) {
    run_.clock().Advance(Seconds(1));  // they are ordered by time
    Round(base);
    run_.WaitForStored(base + 1);
    const auto made = events->WaitFor(EventKind::kCheckpointCreated, 3 + base);
    ASSERT_TRUE(made.has_value());
    const std::vector<std::string> names = {"auto-v1-2", "auto-v2-3-kept", "auto-v3"};
    EXPECT_THAT(made->message, HasSubstr("'" + names[base] + "'"));
  }
  events.reset();
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_THAT(CheckpointNames(),
              ElementsAre("auto-v1", "auto-v2-2-kept", "auto-v2-3-kept", "auto-v2-kept", "auto-v3"))
      << "rotation leaves alone what is not its own";
}

TEST_F(RestoreTest, AFailedCheckpointIsAnnounced) {
  Begin();
  EventCatcher events(&run_.coordinator());
  run_.faults().checkpoint = true;
  EXPECT_EQ(admin().CreateCheckpoint(kAnn, "x").status().code(), absl::StatusCode::kResourceExhausted);
  const auto event = events.WaitFor(EventKind::kCheckpointFailed);
  ASSERT_TRUE(event.has_value());
  EXPECT_THAT(event->message, HasSubstr("no space left"));
  run_.faults().checkpoint = false;
  const auto unnamed = admin().CreateCheckpoint(kAnn, "");
  ASSERT_TRUE(unnamed.ok()) << unnamed.status();
  EXPECT_THAT(unnamed->name, HasSubstr("v0-"));
}

TEST_F(RestoreTest, RestoresWhileWorkersPushNeverMixEpochs) {
  Begin();
  Round(0);
  ASSERT_TRUE(admin().CreateCheckpoint(kAnn, "one").ok());
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (const MemberRef& first : workers_) {
    threads.emplace_back([&, worker = first]() mutable {
      while (!stop) {
        const auto pulled = run_.Pull(worker, std::nullopt, FragmentId(0), Duration(0));
        if (!pulled.ok()) {
          worker = run_.Join(worker.worker);
          continue;
        }
        if (pulled->snapshot == nullptr) continue;
        EXPECT_EQ(pulled->snapshot->epoch, worker.epoch);
        (void)run_.Push(worker, pulled->snapshot->version.value(),
                        DeltaOf(worker, pulled->snapshot->version.value()));
      }
    });
  }
  Version last;
  for (int i = 0; i < 20; ++i) {
    const RestoreResult restored = Restore("one");
    ASSERT_EQ(restored.versions.size(), 1u);
    EXPECT_GT(restored.versions[0], last) << "the head never goes back";
    last = restored.versions[0];
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(run_.Restart().ok());
  EXPECT_GE(run_.coordinator().GetStatus(0).fragments[0].version, last);
}

/// A refusal that a worker repeats by itself, after a while.
void ExpectRetry(const absl::Status& rejected) {
  EXPECT_TRUE(absl::IsUnavailable(rejected)) << rejected;
  EXPECT_EQ(ReasonOf(rejected), RejectionReason::kNone);
  ASSERT_TRUE(RejectionOf(rejected).has_value());
  EXPECT_TRUE(RejectionOf(rejected)->retry_after.has_value());
}

TEST_F(RestoreTest, APushThatMeetsTheRestoreIsToComeAgain) {
  Begin();
  Round(0);
  ASSERT_TRUE(admin().CreateCheckpoint(kAnn, "one").ok());
  absl::Status rejected;
  run_.faults().after_epoch = [&] { rejected = run_.Push(workers_[0], 1, DeltaOf(workers_[0], 1)).status(); };
  (void)Restore("one");
  ExpectRetry(rejected);
  EXPECT_EQ(ReasonOf(run_.Push(workers_[0], 1, DeltaOf(workers_[0], 1)).status()),
            RejectionReason::kWrongEpoch)
      << "then it learns of the restore";
}

TEST_F(RestoreTest, AnUploadThatBeginsAsTheRestoreEndsIsToComeAgain) {
  Begin();
  Round(0);
  ASSERT_TRUE(admin().CreateCheckpoint(kAnn, "one").ok());
  run_.faults().before_upload = [&] { (void)Restore("one"); };
  ExpectRetry(run_.Push(workers_[0], 1, DeltaOf(workers_[0], 1)).status());
  EXPECT_EQ(ReasonOf(run_.Push(workers_[0], 1, DeltaOf(workers_[0], 1)).status()),
            RejectionReason::kWrongEpoch);
}

TEST_F(RestoreTest, AnUploadThatStartsOverAfterTheRestoreIsToComeAgain) {
  Begin();
  Round(0);
  ASSERT_TRUE(admin().CreateCheckpoint(kAnn, "one").ok());
  const std::vector<float> values = DeltaOf(workers_[0], 1);
  const PushHeader header = run_.MakePush(1, AsBytes(values));
  {
    const auto broken = run_.coordinator().StartPush(workers_[0], header);
    ASSERT_TRUE(broken.ok()) << broken.status();
    ASSERT_TRUE((*broken)->Append(0, AsBytes(values).first(1000)).ok());
  }
  const auto session = run_.coordinator().StartPush(workers_[0], header);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_EQ((*session)->received_bytes(), 1000);
  run_.faults().before_upload = [&] { (void)Restore("one"); };
  ExpectRetry((*session)->Append(0, AsBytes(values)));
}

TEST_F(RestoreTest, AnUploadThatAnotherStreamOvertookIsToComeAgain) {
  Begin();
  Round(0);
  run_.faults().before_upload = [&] { ASSERT_TRUE(run_.Push(workers_[0], 1, DeltaOf(workers_[0], 1)).ok()); };
  ExpectRetry(run_.Push(workers_[0], 1, DeltaOf(workers_[0], 1)).status());
  const auto again = run_.Push(workers_[0], 1, DeltaOf(workers_[0], 1));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->duplicate);
}

}  // namespace
}  // namespace atl

#include <gtest/gtest.h>

#include <cmath>
#include <future>

#include "common/content_hash.h"
#include "core/delta.h"
#include "server/admin/admin_control.h"
#include "tests/server/test_run.h"

// Delta pulls through the whole coordinator: who follows by differences and who joins hold the same bits.

namespace atl {
namespace {

const AdminCaller kAnn{.user = "ann", .peer = "test"};

CoordinatorOptions DeltaRun(CodecKind codec) {
  CoordinatorOptions options = SmallRun();
  options.run.rounds = 1000;
  options.run.pull_delta = codec;
  return options;
}

float Start(size_t i) { return 0.5F + 0.01F * static_cast<float>(i % 13); }
std::vector<float> DeltaOf(const MemberRef& worker, uint64_t base) {
  return Fill([&](size_t i) {
    return 0.01F * std::sin(static_cast<float>(i + base * 31 + static_cast<size_t>(worker.worker[0])));
  });
}

/// A worker's view: what it holds, brought to the head by whatever the coordinator sends.
class Follower {
 public:
  Follower(TestRun* run, MemberRef caller) : run_(run), caller_(std::move(caller)) {}

  /// Fails the test when it does not get there.
  void CatchUp() {
    while (true) {
      const absl::StatusOr<PullResult> pulled = Pull();
      ASSERT_TRUE(pulled.ok()) << pulled.status();
      ASSERT_EQ(pulled->outcome, PullOutcome::kParameters);
      if (pulled->delta == nullptr) {
        values_ = AsFloats(*pulled->snapshot);
        version_ = pulled->snapshot->version;
        ++in_full;
        return;
      }
      ASSERT_EQ(pulled->delta->from, version_);
      ApplyDelta(CodecFor(pulled->delta->codec), pulled->delta->payload, values_);
      version_ = pulled->delta->to;
      const Hash128 hash = HashBytes(AsBytes(values_));
      ASSERT_EQ(pulled->delta->published, (ContentHash{.low = hash.low, .high = hash.high}));
      ++by_delta;
      if (*version_ == pulled->snapshot->version) return;
    }
  }
  const std::vector<float>& values() const { return values_; }
  int in_full = 0;
  int by_delta = 0;

 private:
  absl::StatusOr<PullResult> Pull() {
    auto answer = std::make_shared<std::promise<absl::StatusOr<PullResult>>>();
    auto result = answer->get_future();
    PullCall call;
    call.wait = Seconds(60);
    call.have = version_;
    run_->coordinator().Pull(
        caller_, call, [answer](absl::StatusOr<PullResult> pulled) { answer->set_value(std::move(pulled)); });
    return result.get();
  }

  TestRun* const run_;
  const MemberRef caller_;
  std::optional<Version> version_;
  std::vector<float> values_;
};

void Round(TestRun& run, const std::vector<MemberRef>& workers, uint64_t base) {
  for (const MemberRef& worker : workers) {
    const auto pushed = run.Push(worker, base, DeltaOf(worker, base));
    ASSERT_TRUE(pushed.ok()) << pushed.status();
  }
  ASSERT_TRUE(run.Pull(workers[0], base).ok());
}

TEST(DeltaPull, FollowersAndJoinersHoldTheSameBitsOverAHundredVersions) {
  TestRun run(DeltaRun(CodecKind::kE3m0));
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  Follower always(&run, workers[0]);
  always.CatchUp();
  Follower sometimes(&run, workers[1]);
  for (uint64_t base = 0; base < 100; ++base) {
    for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
    if (base == 50) {
      run.WaitForStored(base);
      ASSERT_TRUE(run.Restart().ok());
      for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
    }
    Round(run, workers, base);
    Follower joiner(&run, workers[1]);
    joiner.CatchUp();
    ASSERT_EQ(joiner.in_full, 1);
    always.CatchUp();
    ASSERT_EQ(always.values(), joiner.values()) << base;
    // It misses one version, then one, then three: more than are kept.
    const uint64_t turn = base % 10;
    if (turn != 0 && turn != 1 && turn != 3 && turn != 5 && turn != 9) continue;
    sometimes.CatchUp();
    ASSERT_EQ(sometimes.values(), joiner.values()) << base;
  }
  EXPECT_EQ(always.in_full, 1);
  EXPECT_EQ(always.by_delta, 100);
  EXPECT_GE(sometimes.in_full, 10) << "who is too far behind gets all of it";
  EXPECT_GT(sometimes.by_delta, 50);
}

TEST(DeltaPull, ReplaysAndVerifiesBitForBit) {
  TestRun run(DeltaRun(CodecKind::kInt8));
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  for (uint64_t base = 0; base < 4; ++base) {
    for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
    Round(run, workers, base);
  }
  const std::vector<float> before = run.Published(workers[0], std::nullopt);
  run.WaitForStored(4);
  int equal = 0;
  ASSERT_TRUE(run.admin()
                  .Verify(std::nullopt,
                          [&](const VerifyView& view) {
                            EXPECT_NE(view.verdict, VerifyView::Verdict::kDifferent) << view.message;
                            equal += view.verdict == VerifyView::Verdict::kEqual ? 1 : 0;
                            return true;
                          })
                  .ok());
  EXPECT_GT(equal, 0);
  ASSERT_TRUE(run.Restart().ok());
  EXPECT_EQ(run.Published(workers[0], std::nullopt), before);
}

TEST(DeltaPull, ARestoreBringsBackWhatWasPublished) {
  TestRun run(DeltaRun(CodecKind::kInt8));
  std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill(Start));
  const auto round = [&](uint64_t base, uint64_t seed) {
    for (const MemberRef& worker : workers) ASSERT_TRUE(run.Pull(worker).ok());
    for (const MemberRef& worker : workers) ASSERT_TRUE(run.Push(worker, base, DeltaOf(worker, seed)).ok());
    ASSERT_TRUE(run.Pull(workers[0], base).ok());
  };
  round(0, 0);
  ASSERT_TRUE(run.admin().CreateCheckpoint(kAnn, "one").ok());
  const std::vector<float> then = run.Published(workers[0], std::nullopt);
  round(1, 1);
  const std::vector<float> after = run.Published(workers[0], std::nullopt);
  ASSERT_TRUE(run.admin().RestoreCheckpoint(kAnn, "one").ok());
  for (MemberRef& worker : workers) worker = run.Join(worker.worker);
  EXPECT_EQ(run.Published(workers[0], std::nullopt), then);
  round(3, 1);
  EXPECT_EQ(run.Published(workers[0], std::nullopt), after) << "it goes on as it did then";
}

}  // namespace
}  // namespace atl

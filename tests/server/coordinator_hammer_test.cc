#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/random.h"
#include "server/rejection.h"
#include "tests/server/test_run.h"

// Many threads do at once whatever a worker may do, while time jumps, leases end and rounds close. Afterwards
// the run must be one that its own records explain. Meant for ThreadSanitizer as well.

namespace atl {
namespace {

constexpr uint64_t kVersions = 150;

class Hammer {
 public:
  Hammer() : run_(Options()) {
    callers_ = run_.Begin({"w0", "w1", "w2", "w3"}, Fill([](size_t) { return 1.0F; }));
  }

  void Go() {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < callers_.size(); ++i) threads.emplace_back([this, i] { Work(i); });
    threads.emplace_back([this] { Time(); });
    threads.emplace_back([this] { Watch(); });
    for (std::thread& thread : threads) thread.join();
  }

  TestRun& run() { return run_; }
  uint64_t accepted() const { return accepted_; }

 private:
  static CoordinatorOptions Options() {
    CoordinatorOptions options = SmallRun();
    options.run.rounds = 1'000'000;
    options.run.round.start_workers = 4;
    options.run.round.quorum = 0.5;
    options.run.round.grace = Seconds(0.2);
    options.run.round.deadline = Seconds(2);
    options.run.round.lease = Seconds(3);
    return options;
  }

  bool Done() {
    const StatusView status = run_.coordinator().GetStatus(0);
    return status.fragments[0].version >= Version(kVersions);
  }

  void Work(size_t index) {
    SplitMixGenerator random(index + 1);
    MemberRef caller = callers_[index];
    std::optional<uint64_t> have;
    while (!Done()) {
      const auto pulled = run_.Pull(caller, have, FragmentId(0), Seconds(0.5));
      if (ReasonOf(pulled.status()) == RejectionReason::kNotAMember) caller = run_.Join(caller.worker);
      if (!pulled.ok() || pulled->outcome != PullOutcome::kParameters) continue;
      have = pulled->snapshot->version.value();
      if (random.Below(10) == 0) {
        ASSERT_TRUE(run_.coordinator().Leave(caller, "hammered").ok());
        caller = run_.Join(caller.worker);
      }
      (void)run_.Heartbeat(caller);
      PushOnce(caller, *have, random);
    }
  }

  void PushOnce(const MemberRef& caller, uint64_t base, SplitMixGenerator& random) {
    const auto scale = static_cast<float>(random.Uniform() * 1e-3);
    const std::vector<float> delta = Fill([&](size_t i) { return scale * static_cast<float>(i % 5); });
    auto pushed = run_.Push(caller, base, delta);
    if (pushed.ok()) {
      ++accepted_;
      const auto again = run_.Push(caller, base, delta);
      EXPECT_TRUE(!again.ok() || again->duplicate);
      const auto status = run_.coordinator().GetPushStatus(
          caller, {.fragment = FragmentId(0), .base = Version(base), .sequence = 0});
      ASSERT_TRUE(status.ok());
      EXPECT_TRUE(status->stage == PushStage::kAccepted || status->stage == PushStage::kCommitted)
          << "what was acknowledged is never missed";
    } else {
      EXPECT_EQ(ReasonOf(pushed.status()), RejectionReason::kStaleBase) << pushed.status();
    }
  }

  void Time() {
    while (!Done()) run_.clock().Advance(Seconds(0.001));
  }

  void Watch() {
    while (!Done()) {
      EventCatcher events(&run_.coordinator());
      (void)events.WaitFor(EventKind::kSeeded);
      (void)run_.coordinator().ListWorkers(true);
    }
  }

  TestRun run_;
  std::vector<MemberRef> callers_;
  std::atomic<uint64_t> accepted_{0};
};

TEST(CoordinatorHammer, TheRecordsExplainTheRun) {
  Hammer hammer;
  hammer.Go();
  const MemberRef reader = hammer.run().Join("reader", WorkerRole::kObserver);
  uint64_t counted = 0;
  hammer.run().Stop();
  ASSERT_TRUE(hammer.run().Restart().ok());
  const StatusView status = hammer.run().coordinator().GetStatus(1000);
  EXPECT_EQ(status.rounds.size(), status.fragments[0].version.value());
  for (const RoundSummaryView& round : status.rounds) counted += round.contributions;
  counted += status.fragments[0].arrived.size();
  EXPECT_EQ(counted, hammer.accepted()) << "every acknowledged contribution counts once, and no other";
  EXPECT_EQ(hammer.run().Pull(reader)->snapshot->version, status.fragments[0].version);
}

}  // namespace
}  // namespace atl

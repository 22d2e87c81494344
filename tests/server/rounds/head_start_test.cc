#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/server/test_run.h"

// Who pulls a version goes before its tensors are written (server/publish/version_writer.h).

namespace atl {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Of the second that readers are ahead at most, this much can be relied on here.
constexpr milliseconds kWithin(800);

CoordinatorOptions LongRun() {
  CoordinatorOptions options = SmallRun();
  options.run.rounds = 100;
  return options;
}

Version Stored(TestRun& run) { return run.coordinator().GetStatus(0).fragments[0].stored; }

/// Pushes of both workers on `base`, and one's pull of what comes of them.
absl::StatusOr<PullResult> Exchange(TestRun& run, const std::vector<MemberRef>& workers, uint64_t base) {
  for (const MemberRef& worker : workers) {
    if (const auto pushed = run.Push(worker, base, Fill([](size_t) { return 0.25F; })); !pushed.ok()) {
      return pushed.status();
    }
  }
  return run.Pull(workers[0], base);
}

/// Whether version `base` was not written while what `pulled` holds was read.
bool WaitedForTheReader(TestRun& run, uint64_t base) {
  const auto begin = steady_clock::now();
  bool waited = true;
  while (steady_clock::now() - begin < milliseconds(300)) {
    waited = waited && Stored(run) == Version(base);
    std::this_thread::sleep_for(milliseconds(5));
  }
  return waited;
}

TEST(HeadStart, AVersionIsWrittenWhenNobodyReadsItAnyMore) {
  TestRun run(LongRun());
  const auto workers = run.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  run.WaitForStored(0);
  // On a busy machine the pull may come after the version writer has looked for readers: one attempt of some
  // has to show it.
  bool shown = false;
  for (uint64_t base = 0; base < 10 && !shown; ++base) {
    auto pulled = Exchange(run, workers, base);
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    shown = WaitedForTheReader(run, base);
    pulled = absl::CancelledError("read");
    run.WaitForStored(base + 1);
  }
  EXPECT_TRUE(shown);
}

TEST(HeadStart, AReaderThatIsSlowDoesNotHoldItUp) {
  TestRun run(LongRun());
  const auto workers = run.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  const auto pulled = Exchange(run, workers, 0);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  run.WaitForStored(1);
}

TEST(HeadStart, EndsWithTheFirstContributionToTheNextRound) {
  TestRun run(LongRun());
  const auto workers = run.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  // On a busy machine a second may pass for other reasons: one attempt of some has to show it.
  bool shown = false;
  for (uint64_t base = 0; base < 10 && !shown; base += 2) {
    const auto begin = steady_clock::now();
    const auto pulled = Exchange(run, workers, base);
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    ASSERT_TRUE(run.Push(workers[0], base + 1, Fill([](size_t) { return 0.25F; })).ok());
    run.WaitForStored(base + 1);
    shown = steady_clock::now() - begin < kWithin;
    ASSERT_TRUE(run.Push(workers[1], base + 1, Fill([](size_t) { return 0.25F; })).ok());
    ASSERT_TRUE(run.Pull(workers[0], base + 1).ok());
  }
  EXPECT_TRUE(shown);
}

}  // namespace
}  // namespace atl

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>

#include "core/data_shares.h"
#include "server/rejection.h"
#include "tests/server/test_run.h"

// Every sample of the shared data is counted, over departures, returns, late contributions and restarts of
// the coordinator.

namespace atl {
namespace {

constexpr uint32_t kPartitions = 4;
constexpr uint64_t kSamples = 8;  // of one round: two steps of four sequences

CoordinatorOptions DataRun() {
  CoordinatorOptions options = SmallRun();
  RunOptions& run = options.run;
  run.rounds = 100000;
  run.data.partitions = kPartitions;
  run.error_feedback = false;  // what is refused must be read again
  run.round.staleness_limit = 2;
  run.round.quorum = 0.5;
  run.round.grace = Seconds(3);
  run.round.start_workers = 1;
  return options;
}

/// A worker that reads where it is told to, and else where it stands.
struct Reader {
  MemberRef caller;
  DataPlace at;
  std::optional<uint64_t> base;  // it is in the middle of a round on this
  bool there = true;
};

class DataRounds {
 public:
  explicit DataRounds(uint32_t seed) : random_(seed), run_(DataRun()) {
    for (const char* name : {"w0", "w1", "w2"}) Join(name);
    const auto seeded = run_.Seed(readers_["w0"].caller, Fill([](size_t) { return 1.0F; }));
    EXPECT_TRUE(seeded.ok()) << seeded.status();
  }

  /// So many events, and on until they have come to something: on a busy machine the rounds, which have a
  /// thread of their own, get less done between two of them.
  void Run(int events) {
    const MonoTime deadline = SystemClock().Now() + Seconds(60);
    for (int i = 0; i < events || (!Telling() && SystemClock().Now() < deadline); ++i) {
      if (testing::Test::HasFailure()) return;
      Event();
      run_.clock().Advance(Seconds(1));
      for (auto& [name, reader] : readers_) {
        if (reader.there) (void)run_.Heartbeat(reader.caller);
      }
    }
  }

  void Check() const {
    std::map<uint32_t, uint64_t> ends;
    uint64_t repeats = 0;
    for (const auto& [sample, times] : read_) {
      uint64_t& end = ends[sample.first];
      EXPECT_EQ(sample.second, end) << "a sample of partition " << sample.first << " was passed over";
      end = sample.second + 1;
      repeats += times - 1;
    }
    EXPECT_LE(repeats, unfinished_) << "repeats come only from rounds that came to no end";
    EXPECT_TRUE(Telling()) << "too little happened to show anything";
    EXPECT_EQ(ends.size(), kPartitions) << "the part that nobody has is read as well";
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    for (const auto& [partition, end] : ends) {
      least = std::min(least, end);
      most = std::max(most, end);
    }
    EXPECT_LE(most - least, 4 * kSamples) << "none is left far behind";
  }

 private:
  bool Telling() const { return read_.size() > 10 * kSamples; }

  uint32_t Roll(uint32_t sides) { return static_cast<uint32_t>(random_() % sides); }

  void Join(const WorkerName& name) {
    const auto joined = run_.TryJoin(name);
    ASSERT_TRUE(joined.ok()) << joined.status();
    Reader& reader = readers_[name];
    reader.caller = joined->member;
    reader.at = {.partition = joined->data->partition, .position = joined->data->samples_consumed};
    Abandon(reader);
    reader.there = true;
  }

  void Abandon(Reader& reader) {
    if (reader.base) unfinished_ += kSamples;
    reader.base.reset();
  }

  void Event() {
    const WorkerName name = "w" + std::to_string(Roll(3));
    Reader& reader = readers_[name];
    const uint32_t what = Roll(100);
    if (what < 4) return Restart();
    if (!reader.there) {
      if (what < 40) Join(name);
      return;
    }
    if (what < 7) {
      reader.there = false;  // vanishes
    } else if (what < 10) {
      ASSERT_TRUE(run_.coordinator().Leave(reader.caller, "").ok());
      Abandon(reader);
      reader.there = false;
    } else if (reader.base) {
      Push(reader);
    } else {
      Pull(reader);
    }
  }

  void Restart() {
    const absl::Status restarted = run_.Restart();
    ASSERT_TRUE(restarted.ok()) << restarted;
    // Who reads what is forgotten: another may read the same until these rounds are over.
    for (auto& [name, reader] : readers_) {
      if (reader.base) unfinished_ += kSamples;
    }
  }

  void Pull(Reader& reader) {
    const auto pulled = run_.Pull(reader.caller, std::nullopt, FragmentId(0), Duration(0));
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    ASSERT_EQ(pulled->outcome, PullOutcome::kParameters);
    if (done_.contains({reader.caller.worker, pulled->snapshot->version.value()})) return;
    if (pulled->plan.data) {
      reader.at = {.partition = pulled->plan.data->partition,
                   .position = pulled->plan.data->samples_consumed};
    }
    reader.base = pulled->snapshot->version.value();
  }

  void Push(Reader& reader) {
    const uint64_t base = *reader.base;
    const DataPlace from = reader.at;
    absl::StatusOr<PushResult> pushed = absl::UnavailableError("");
    while (absl::IsUnavailable(pushed.status())) {
      pushed = run_.Push(reader.caller, base, Fill([](size_t) { return 0.0001F; }),
                         {.samples = from.position + kSamples, .partition = from.partition});
      std::this_thread::yield();
    }
    reader.at.position += kSamples;
    if (!pushed.ok()) {
      EXPECT_EQ(ReasonOf(pushed.status()), RejectionReason::kStaleBase) << pushed.status();
      return Abandon(reader);
    }
    reader.base.reset();
    done_.insert({reader.caller.worker, base});
    for (uint64_t k = 0; k < kSamples; ++k) ++read_[{from.partition, from.position + k}];
  }

  std::mt19937 random_;
  TestRun run_;
  std::map<WorkerName, Reader> readers_;
  std::set<std::pair<WorkerName, uint64_t>> done_;
  std::map<std::pair<uint32_t, uint64_t>, uint64_t>
      read_;  // times each sample is in an accepted contribution
  uint64_t unfinished_ = 0;
};

TEST(DataRoundsTest, NoSampleIsPassedOverAndOnlyUnfinishedRoundsAreRepeated) {
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    DataRounds rounds(seed);
    rounds.Run(400);
    rounds.Check();
    if (testing::Test::HasFailure()) return;
  }
}

TEST(DataRoundsTest, TheShareOfOneWhoIsGoneIsGivenOutByTheRound) {
  CoordinatorOptions options = DataRun();
  options.run.data.partitions = 2;
  options.run.round.start_workers = 2;
  options.run.round.staleness_limit = 0;
  TestRun run(options);
  const std::vector<MemberRef> workers = run.Begin({"a", "b"}, Fill([](size_t) { return 1.0F; }));
  const std::vector<float> delta = Fill([](size_t) { return 0.001F; });
  for (const MemberRef& worker : workers) EXPECT_FALSE(run.Pull(worker)->plan.data) << "each at its own";
  for (uint32_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(run.Push(workers[i], 0, delta, {.samples = kSamples, .partition = i}).ok());
  }
  ASSERT_TRUE(run.Pull(workers[0], 0).ok());
  ASSERT_TRUE(run.coordinator().Leave(workers[1], "").ok());
  ASSERT_TRUE(run.Push(workers[0], 1, delta, {.samples = 2 * kSamples, .partition = 0}).ok());
  for (int i = 0; i < 4; ++i) {
    run.clock().Advance(Seconds(5));
    ASSERT_TRUE(run.Heartbeat(workers[0]).ok());
  }
  // b is gone for more than a lease, and its part lies one round behind a's.
  const auto lent = run.Pull(workers[0], 1);
  ASSERT_TRUE(lent.ok());
  ASSERT_TRUE(lent->plan.data.has_value());
  EXPECT_EQ(lent->plan.data->partition, 1);
  EXPECT_EQ(lent->plan.data->samples_consumed, kSamples);
  // It returns while its part is being read: it reads a's for this round.
  const MemberRef back = run.Join("b");
  const auto swapped = run.Pull(back);
  ASSERT_TRUE(swapped->plan.data.has_value());
  EXPECT_EQ(swapped->plan.data->partition, 0);
  EXPECT_EQ(swapped->plan.data->samples_consumed, 2 * kSamples);
  // The joiner first: nobody waits for it.
  ASSERT_TRUE(run.Push(back, 2, delta, {.samples = 3 * kSamples, .partition = 0}).ok());
  ASSERT_TRUE(run.Push(workers[0], 2, delta, {.samples = 2 * kSamples, .partition = 1}).ok());
  ASSERT_TRUE(run.Pull(workers[0], 2).ok());
  EXPECT_EQ(run.Pull(workers[0])->plan.data->partition, 0);
  EXPECT_EQ(run.Pull(back)->plan.data->partition, 1) << "and has its own back in the next";
}

TEST(DataRoundsTest, APositionIsCappedByWhatWasGiven) {
  TestRun run(DataRun());
  const std::vector<MemberRef> workers = run.Begin({"a"}, Fill([](size_t) { return 1.0F; }));
  ASSERT_TRUE(run.Pull(workers[0]).ok());
  const std::vector<float> delta = Fill([](size_t) { return 0.001F; });
  ASSERT_TRUE(run.Push(workers[0], 0, delta, {.samples = 1'000'000'000, .partition = 0}).ok());
  ASSERT_TRUE(run.Pull(workers[0], 0).ok());
  EXPECT_EQ(run.coordinator().ListWorkers(false).front().data->samples_consumed, kSamples);
  EXPECT_EQ(run.Push(workers[0], 1, delta, {.partition = 4}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace atl

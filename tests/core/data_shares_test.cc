#include "core/data_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"

namespace atl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::optional<DataPlace> kNothing;

DataPlace At(uint32_t partition, uint64_t position) { return {.partition = partition, .position = position}; }

TEST(DataShares, AWorkerReadsItsOwnBehindWhatWasAccepted) {
  DataShares shares(2);
  EXPECT_EQ(shares.Assign("a", Version(0), 0, {}, kNothing), At(0, 0));
  EXPECT_EQ(shares.Assign("a", Version(0), 0, {}, kNothing), At(0, 0)) << "asked again";
  shares.Accepted("a", Version(0), At(0, 8));
  EXPECT_EQ(shares.consumed(0), 0) << "only promised";
  EXPECT_EQ(shares.Assign("a", Version(1), 0, {}, kNothing), At(0, 8));
  shares.Committed(At(0, 8));
  EXPECT_EQ(shares.consumed(0), 8);
}

TEST(DataShares, ARejectedRangeIsReadAgainUnlessItIsCarried) {
  DataShares shares(2);
  (void)shares.Assign("a", Version(0), 0, {}, kNothing);
  EXPECT_EQ(shares.Assign("a", Version(1), 0, {}, kNothing), At(0, 0));
  EXPECT_EQ(shares.Assign("a", Version(2), 0, {}, At(0, 8)), At(0, 8)) << "it goes into the next one";
  EXPECT_EQ(shares.promised(0), 0) << "but another would read it, if the worker went";
}

TEST(DataShares, WhatNobodyReadsIsLentForOneRoundWhenItLiesBehind) {
  const std::vector<uint32_t> unattended = {2, 3};
  DataShares shares(4);
  EXPECT_EQ(shares.Assign("a", Version(0), 0, unattended, kNothing), At(0, 0)) << "it does not lie behind";
  EXPECT_EQ(shares.Assign("b", Version(0), 1, unattended, kNothing), At(1, 0));
  shares.Accepted("a", Version(0), At(0, 8));
  shares.Accepted("b", Version(0), At(1, 8));
  EXPECT_EQ(shares.Assign("a", Version(1), 0, unattended, kNothing), At(2, 0));
  EXPECT_EQ(shares.Assign("b", Version(1), 1, unattended, kNothing), At(3, 0)) << "one reader each";
  shares.Accepted("a", Version(1), At(2, 8));
  EXPECT_EQ(shares.Assign("a", Version(2), 0, unattended, kNothing), At(0, 8)) << "back to its own";
}

TEST(DataShares, WhoComesBackWhileItsOwnIsReadTakesThatReadersOwn) {
  DataShares shares(2);
  shares.Restore(0, 8);
  EXPECT_EQ(shares.Assign("a", Version(5), 0, std::vector<uint32_t>{1}, kNothing), At(1, 0));
  EXPECT_EQ(shares.Assign("b", Version(5), 1, {}, kNothing), At(0, 8));
  shares.Accepted("a", Version(5), At(1, 8));
  shares.Accepted("b", Version(5), At(0, 16));
  EXPECT_EQ(shares.Assign("b", Version(6), 1, {}, kNothing), At(1, 8)) << "the next round is its own again";
  EXPECT_EQ(shares.Assign("a", Version(6), 0, {}, kNothing), At(0, 16));
}

TEST(DataShares, AReaderThatIsGoneBlocksNobody) {
  DataShares shares(2);
  shares.Restore(0, 8);
  (void)shares.Assign("a", Version(5), 0, std::vector<uint32_t>{1}, kNothing);
  EXPECT_THAT(shares.readers(), ElementsAre("a"));
  shares.Release("a");
  EXPECT_THAT(shares.readers(), IsEmpty());
  EXPECT_EQ(shares.Assign("b", Version(5), 1, {}, kNothing), At(1, 0));
  // Its contribution comes after all: both read it, nothing is passed over.
  shares.Accepted("b", Version(5), At(1, 4));
  shares.Accepted("a", Version(5), At(1, 8));
  EXPECT_EQ(shares.promised(1), 8);
  shares.Accepted("b", Version(5), At(1, 4));
  EXPECT_EQ(shares.promised(1), 8) << "never back";
}

TEST(DataShares, WhatIsLeftOutOfItsRoundIsReadAgain) {
  DataShares shares(1);
  shares.Accepted("a", Version(0), At(0, 8));
  shares.Accepted("a", Version(1), At(0, 16));
  shares.Withdrawn(0, 8);
  EXPECT_EQ(shares.promised(0), 8);
}

/// Workers of different speed that come, go, freeze, crash and are late, and a coordinator that crashes. The
/// model knows nothing of how shares are chosen: it counts samples.
class Simulation {
 public:
  explicit Simulation(uint32_t seed) : random_(seed) {}

  void Run(int events) {
    for (int i = 0; i < events; ++i) Event();
    // To the end: everybody who has something to say says it, and the round closes.
    for (auto& [name, worker] : workers_) {
      if (worker.reading) Push(name);
    }
    Commit();
  }

  void Check() const {
    uint64_t read = 0;
    uint64_t repeats = 0;
    for (uint32_t partition = 0; partition < kPartitions; ++partition) {
      for (uint64_t k = 0; k < shares_.consumed(partition); ++k) {
        const auto it = merged_.find({partition, k});
        ASSERT_NE(it, merged_.end()) << "sample " << k << " of partition " << partition << " was passed over";
        ++read;
        repeats += it->second - 1;
      }
    }
    EXPECT_EQ(read, merged_.size()) << "what was merged is consumed";
    EXPECT_LE(repeats, unfinished_) << "repeats come only from rounds that did not end as they were begun";
    EXPECT_GT(read, 500);
  }

 private:
  static constexpr uint32_t kPartitions = 5;
  struct Reading {
    Version base;
    DataPlace from;
    uint64_t to = 0;
    bool disowned = false;  // the coordinator does not know of it any more
  };
  struct Worker {
    uint32_t own = 0;
    bool live = true;
    int gone_for = 0;
    std::optional<Reading> reading;
  };
  struct Accepted {
    WorkerName worker;
    Version base;
    DataPlace from;
    uint64_t to = 0;
  };

  uint32_t Roll(uint32_t sides) { return static_cast<uint32_t>(random_() % sides); }

  std::vector<uint32_t> Unattended() const {
    std::set<uint32_t> unattended;
    for (uint32_t p = 0; p < kPartitions; ++p) unattended.insert(p);
    for (const auto& [name, worker] : workers_) {
      if (worker.live || worker.gone_for < 3) unattended.erase(worker.own);
    }
    return {unattended.begin(), unattended.end()};
  }

  void Event() {
    for (auto& [name, worker] : workers_) {
      if (worker.live) continue;
      if (++worker.gone_for == 3) Disown(name, worker);
    }
    const uint32_t what = Roll(100);
    const WorkerName name = absl::StrCat("w", Roll(kPartitions));
    const auto known = workers_.find(name);
    if (what < 10) return Commit();
    if (what < 13) return Crash();
    if (known == workers_.end()) {
      const auto own = static_cast<uint32_t>(name.back() - '0');
      workers_[name] = Worker{.own = own, .live = true, .gone_for = 0, .reading = std::nullopt};
      return;
    }
    Worker& worker = known->second;
    if (!worker.live) {
      if (what < 60) return;
      worker.live = true;  // thawed, or back with its work at hand
      if (what < 80) Forget(worker);
      worker.gone_for = 0;
      return;
    }
    if (what < 20) {
      worker.live = false;
      worker.gone_for = 0;
    } else if (worker.reading && what < 80) {
      Push(name);
    } else if (!worker.reading) {
      Pull(name, worker);
    }
  }

  void Pull(const WorkerName& name, Worker& worker) {
    const DataPlace from = shares_.Assign(name, head_, worker.own, Unattended(), kNothing);
    worker.reading = Reading{.base = head_, .from = from, .to = from.position + 1 + Roll(6)};
  }

  /// A new process with nothing at hand: it did not finish what it had begun.
  void Forget(Worker& worker) {
    if (worker.reading) unfinished_ += worker.reading->to - worker.reading->from.position;
    worker.reading.reset();
  }

  void Disown(const WorkerName& name, Worker& worker) {
    shares_.Release(name);
    if (worker.reading && !worker.reading->disowned) {
      worker.reading->disowned = true;
      unfinished_ += worker.reading->to - worker.reading->from.position;
    }
  }

  void Push(const WorkerName& name) {
    Worker& worker = workers_[name];
    const Reading reading = *std::exchange(worker.reading, std::nullopt);
    const bool counted = !done_.insert({name, reading.base}).second;
    if (counted || head_.value() - reading.base.value() > 2) {
      unfinished_ += reading.to - reading.from.position;
      return;
    }
    shares_.Accepted(name, reading.base, At(reading.from.partition, reading.to));
    open_.push_back({.worker = name, .base = reading.base, .from = reading.from, .to = reading.to});
  }

  void Commit() {
    if (open_.empty()) return;
    for (const Accepted& c : open_) {
      for (uint64_t k = c.from.position; k < c.to; ++k) ++merged_[{c.from.partition, k}];
      shares_.Committed(At(c.from.partition, c.to));
    }
    open_.clear();
    head_ = Next(head_);
  }

  /// All that is left is what was stored with the last version, and the accepted contributions.
  void Crash() {
    DataShares restored(kPartitions);
    for (uint32_t p = 0; p < kPartitions; ++p) restored.Restore(p, shares_.consumed(p));
    for (const Accepted& c : open_) restored.Accepted(c.worker, c.base, At(c.from.partition, c.to));
    shares_ = std::move(restored);
    for (auto& [name, worker] : workers_) {
      if (!worker.reading || worker.reading->disowned) continue;
      worker.reading->disowned = true;
      unfinished_ += worker.reading->to - worker.reading->from.position;
    }
  }

  std::mt19937 random_;
  DataShares shares_{kPartitions};
  Version head_{0};
  std::map<WorkerName, Worker> workers_;
  std::vector<Accepted> open_;
  std::set<std::pair<WorkerName, Version>> done_;
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> merged_;
  uint64_t unfinished_ = 0;  // samples in rounds that did not end as they were begun
};

TEST(DataShares, NoSampleIsPassedOverAndOnlyUnfinishedRoundsAreRepeated) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Simulation simulation(seed);
    simulation.Run(3000);
    simulation.Check();
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace atl

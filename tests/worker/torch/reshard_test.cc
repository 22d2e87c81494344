// The optimizer's state of an island whose number of ranks changes between its lives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/memory_plan.h"
#include "tests/worker/torch/rank_threads.h"
#include "tests/worker/torch/tiny_run.h"
#include "worker/torch/rank_group.h"
#include "worker/torch/rank_slices.h"
#include "worker/torch/torch_replica.h"

namespace atl {
namespace {

using testing::Parameters;
using testing::TinyDataset;
using testing::TinyReplica;
using testing::WholeModel;
using testing::WithRanks;

constexpr uint32_t kSequences = 24;  // of a step, of all ranks together
constexpr double kRate = 1e-3;

/// What rank 0 keeps at the end of a life.
struct Kept {
  ReplicaState state;
  std::vector<float> parameters;
  std::vector<double> losses;  // of all lives
};

/// Takes up what the life before kept, as the worker does: the parameters from the coordinator, the moments
/// from rank 0's disk.
void TakeUp(const Kept& before, uint32_t rank, TorchReplica& replica) {
  ASSERT_TRUE(replica.WriteFragment(WholeModel(replica.manifest()), before.parameters).ok());
  ReplicaState given = before.state;
  if (rank > 0) given.moments.clear();
  const absl::Status loaded = replica.LoadState(given);
  ASSERT_TRUE(loaded.ok()) << loaded;
}

void LiveOnRank(const TorchReplicaOptions& options, const Kept* before, int steps, Kept& kept) {
  const uint32_t rank = options.ranks != nullptr ? options.ranks->rank() : 0;
  auto replica = CreateTorchReplica(options);
  ASSERT_TRUE(replica.ok()) << replica.status();
  if (before != nullptr) TakeUp(*before, rank, **replica);
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    const auto step = (*replica)->InnerStep(kRate);
    ASSERT_TRUE(step.ok()) << step.status();
    losses.push_back(step->loss);
  }
  ReplicaState state;
  ASSERT_TRUE((*replica)->SaveState(state).ok());
  if (rank > 0) return;
  if (before != nullptr) kept.losses = before->losses;
  kept.losses.insert(kept.losses.end(), losses.begin(), losses.end());
  kept.state = std::move(state);
  kept.parameters = Parameters(**replica);
}

/// A life of so many ranks, which takes up what `before` kept (null: it begins), and so many steps.
Kept Live(TorchReplicaOptions options, const Kept* before, uint32_t ranks, int steps) {
  options.run.inner.batch = kSequences / ranks;
  Kept kept;
  if (ranks == 1) {
    LiveOnRank(options, before, steps, kept);
    return kept;
  }
  WithRanks(ranks, [&](RankGroup& group) {
    TorchReplicaOptions own = options;
    own.ranks = &group;
    Kept others;
    LiveOnRank(own, before, steps, group.rank() == 0 ? kept : others);
  });
  return kept;
}

void ExpectEqualBits(const Kept& one, const Kept& other, const std::string& where) {
  EXPECT_EQ(one.parameters, other.parameters) << where;
  EXPECT_EQ(one.losses, other.losses) << where;
  EXPECT_EQ(one.state.moments, other.state.moments) << where;
  EXPECT_EQ(one.state.kind, other.state.kind) << where;
  EXPECT_EQ(one.state.optimizer_steps, other.state.optimizer_steps) << where;
  EXPECT_EQ(one.state.partition, other.state.partition) << where;
  EXPECT_EQ(one.state.partitions, other.state.partitions) << where;
  EXPECT_EQ(one.state.samples_consumed, other.state.samples_consumed) << where;
}

/// The largest difference, of the largest value.
double Difference(const std::vector<float>& one, const std::vector<float>& other) {
  EXPECT_EQ(one.size(), other.size());
  double largest = 0;
  double difference = 0;
  for (size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
    largest = std::max(largest, double{std::abs(other[i])});
    difference = std::max(difference, double{std::abs(one[i] - other[i])});
  }
  return largest > 0 ? difference / largest : difference;
}

TEST(ReshardTest, NumbersOfRanksWithoutAStepBetweenChangeNoBit) {
  const TorchReplicaOptions options = TinyReplica(TinyDataset("reshard_bits"));
  const Kept first = Live(options, nullptr, 2, 5);
  ASSERT_EQ(first.state.moments.size(), 2u);
  ASSERT_EQ(first.state.optimizer_steps, 5u);
  // Of eight ranks the first five keep two of the ten blocks each, and the others none.
  ASSERT_EQ((first.state.moments[0].size() + kSumBlock - 1) / kSumBlock, 10u);
  Kept now = first;
  for (const uint32_t ranks : {3U, 8U, 1U, 2U}) {
    now = Live(options, &now, ranks, 0);
    ExpectEqualBits(now, first, std::to_string(ranks) + " ranks");
  }
  // So the life that goes on computes the bits of one that never stopped.
  ExpectEqualBits(Live(options, &now, 2, 5), Live(options, nullptr, 2, 10), "ten steps");
}

TEST(ReshardTest, StepsOfOtherNumbersOfRanksAreTheSameTraining) {
  const TorchReplicaOptions options = TinyReplica(TinyDataset("reshard_steps"));
  const Kept whole = Live(options, nullptr, 1, 20);
  Kept now = Live(options, nullptr, 2, 5);
  Kept forgetful = now;
  for (const uint32_t ranks : {3U, 1U, 4U}) {
    now = Live(options, &now, ranks, 5);
    for (std::vector<float>& moment : forgetful.state.moments) std::ranges::fill(moment, 0.0F);
    forgetful = Live(options, &forgetful, ranks, 5);
  }
  EXPECT_EQ(now.state.optimizer_steps, 20u);
  EXPECT_EQ(now.state.samples_consumed, 20u * kSequences);
  EXPECT_EQ(now.state.samples_consumed, whole.state.samples_consumed);
  ASSERT_EQ(now.losses.size(), whole.losses.size());
  for (size_t i = 0; i < whole.losses.size(); ++i) {
    EXPECT_NEAR(now.losses[i], whole.losses[i], 2e-5) << "step " << i;
  }
  const auto differences = [&](const Kept& kept) {
    return std::vector<double>{Difference(kept.parameters, whole.parameters),
                               Difference(kept.state.moments[0], whole.state.moments[0]),
                               Difference(kept.state.moments[1], whole.state.moments[1])};
  };
  // Sums in another order: about 1e-6. Without the moments of the lives before: 0.015, 0.5 and 0.8.
  const std::vector<double> bounds = {5e-5, 1e-5, 1e-5};
  const std::vector<double> found = differences(now);
  const std::vector<double> forgotten = differences(forgetful);
  for (size_t i = 0; i < bounds.size(); ++i) {
    EXPECT_LT(found[i], bounds[i]) << "parameters, first moments, second moments: " << i;
    EXPECT_GT(forgotten[i], 100 * bounds[i]) << "the bound would not notice that moments are lost: " << i;
    ::testing::Test::RecordProperty("difference_" + std::to_string(i), std::to_string(found[i]));
    ::testing::Test::RecordProperty("forgotten_" + std::to_string(i), std::to_string(forgotten[i]));
  }
}

TEST(ReshardTest, TheLargestPartOfTheMomentsIsThatOfThePlan) {
  const RunOptions run = testing::TinyRun();
  constexpr uint64_t kBytes = 2 * sizeof(float);  // both moments of a value
  for (const uint64_t elements : {uint64_t{34'304}, uint64_t{4096}, uint64_t{124'439'808}}) {
    const uint64_t planned = PlanWorkerMemory(run, elements, elements).optimizer;
    for (const int ranks : {2, 8}) {
      const auto largest = static_cast<uint64_t>(SliceOf(static_cast<int64_t>(elements), 0, ranks).size());
      EXPECT_GE(largest * kBytes, planned / static_cast<uint64_t>(ranks));
      EXPECT_LE(largest * kBytes, planned / static_cast<uint64_t>(ranks) + kSumBlock * kBytes)
          << "at most one block more than an equal part";
    }
  }
}

}  // namespace
}  // namespace atl

// Ranks as threads of one process, over Gloo: what N ranks compute is what one worker with N times the batch
// computes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "common/bind_address.h"
#include "tests/worker/torch/free_port.h"
#include "tests/worker/torch/rank_threads.h"
#include "tests/worker/torch/tiny_run.h"
#include "worker/torch/rank_group.h"
#include "worker/torch/torch_replica.h"

namespace atl {
namespace {

using testing::FreePort;
using ::testing::HasSubstr;
using testing::Parameters;
using testing::TinyDataset;
using testing::TinyReplica;
using testing::WithRanks;

constexpr int kSteps = 20;
constexpr uint32_t kEvaluated = 48;  // sequences

TorchReplicaOptions LlamaReplica(const std::string& dataset) {
  TorchReplicaOptions options = TinyReplica(dataset);
  LlamaOptions llama;
  llama.layers = 2;
  llama.heads = 4;
  llama.kv_heads = 2;
  llama.width = 32;
  llama.intermediate = 48;
  llama.context = 16;
  llama.vocabulary = 256;
  options.run.model = ModelOptions(llama);
  return options;
}

struct Trained {
  std::vector<float> parameters;
  std::vector<double> losses;
  std::vector<double> norms;
  double evaluated = 0;
  uint64_t samples = 0;
  uint64_t tokens = 0;
};

Trained Train(const TorchReplicaOptions& options, int steps = kSteps) {
  Trained trained;
  auto replica = CreateTorchReplica(options);
  EXPECT_TRUE(replica.ok()) << replica.status();
  for (int i = 0; i < steps; ++i) {
    const auto step = (*replica)->InnerStep(1e-3);
    EXPECT_TRUE(step.ok()) << step.status();
    if (!step.ok()) return trained;
    trained.losses.push_back(step->loss);
    trained.norms.push_back(step->gradient_norm);
    trained.tokens += step->tokens;
  }
  // The same text, whatever the batch.
  const auto evaluated = (*replica)->Evaluate(kEvaluated / options.run.inner.batch);
  EXPECT_TRUE(evaluated.ok()) << evaluated.status();
  if (evaluated.ok()) trained.evaluated = evaluated->loss;
  trained.samples = (*replica)->samples_consumed();
  trained.parameters = Parameters(**replica);
  return trained;
}

std::vector<Trained> TrainRanks(const TorchReplicaOptions& options, uint32_t size) {
  std::vector<Trained> trained(size);
  WithRanks(size, [&](RankGroup& group) {
    TorchReplicaOptions own = options;
    own.ranks = &group;
    trained[group.rank()] = Train(own);
  });
  return trained;
}

/// The same optimizer steps, to the rounding of sums in another order.
void ExpectSame(const Trained& one, const Trained& other) {
  ASSERT_EQ(one.losses.size(), size_t{kSteps});
  ASSERT_EQ(other.losses.size(), size_t{kSteps});
  for (int i = 0; i < kSteps; ++i) {
    EXPECT_NEAR(one.losses[i], other.losses[i], 2e-5) << "step " << i;
    EXPECT_NEAR(one.norms[i], other.norms[i], 1e-4 * other.norms[i]) << "step " << i;
  }
  ASSERT_EQ(one.parameters.size(), other.parameters.size());
  double largest = 0;
  for (size_t i = 0; i < one.parameters.size(); ++i) {
    largest = std::max(largest, double{std::abs(one.parameters[i] - other.parameters[i])});
  }
  // Adam divides by the root of a moment: of the 20 steps of 1e-3, no value may be off by more than a part.
  EXPECT_LT(largest, 5e-4);
  EXPECT_NEAR(one.evaluated, other.evaluated, 1e-4);
  EXPECT_EQ(one.samples, other.samples);
  EXPECT_EQ(one.tokens, other.tokens);
  ::testing::Test::RecordProperty("largest_difference", std::to_string(largest));
}

void ExpectRanksEqualLargerBatch(TorchReplicaOptions options, uint32_t size) {
  const std::vector<Trained> ranks = TrainRanks(options, size);
  // All ranks are one model.
  for (uint32_t rank = 1; rank < size; ++rank) {
    EXPECT_EQ(ranks[rank].parameters, ranks[0].parameters);
    EXPECT_EQ(ranks[rank].losses, ranks[0].losses);
  }
  options.run.inner.batch *= size;
  ExpectSame(ranks[0], Train(options));
}

TEST(RanksTest, TwoEqualOneWithTwiceTheBatchGpt) {
  ExpectRanksEqualLargerBatch(TinyReplica(TinyDataset("ranks_gpt")), 2);
}

TEST(RanksTest, TwoEqualOneWithTwiceTheBatchLlama) {
  ExpectRanksEqualLargerBatch(LlamaReplica(TinyDataset("ranks_llama")), 2);
}

TEST(RanksTest, ThreeWithAccumulation) {
  TorchReplicaOptions options = TinyReplica(TinyDataset("ranks_three"));
  options.run.inner.batch = 4;
  const std::vector<Trained> ranks = [&] {
    TorchReplicaOptions accumulating = options;
    accumulating.run.inner.accumulation = 2;
    return TrainRanks(accumulating, 3);
  }();
  options.run.inner.batch = 24;
  ExpectSame(ranks[0], Train(options));
}

TEST(RanksTest, RecomputedActivations) {
  TorchReplicaOptions options = TinyReplica(TinyDataset("ranks_recompute"));
  options.run.inner.activations = Activations::kRecomputed;
  ExpectRanksEqualLargerBatch(options, 2);
}

TEST(RanksTest, EachKeepsItsPartOfTheMoments) {
  const TorchReplicaOptions options = TinyReplica(TinyDataset("ranks_state"));
  // The state of a life, saved by 1, 2, 3 and 1 ranks in turn.
  ReplicaState state;
  {
    auto replica = CreateTorchReplica(options);
    ASSERT_TRUE(replica.ok());
    for (int i = 0; i < 5; ++i) ASSERT_TRUE((*replica)->InnerStep(1e-3).ok());
    ASSERT_TRUE((*replica)->SaveState(state).ok());
  }
  const std::vector<std::vector<float>> moments = state.moments;
  for (const uint32_t size : {2U, 3U}) {
    ReplicaState next;
    WithRanks(size, [&](RankGroup& group) {
      TorchReplicaOptions own = options;
      own.ranks = &group;
      auto replica = CreateTorchReplica(own);
      ASSERT_TRUE(replica.ok()) << replica.status();
      ReplicaState given = state;
      if (group.rank() > 0) given.moments.clear();
      const absl::Status loaded = (*replica)->LoadState(given);
      ASSERT_TRUE(loaded.ok()) << loaded;
      ReplicaState saved;
      ASSERT_TRUE((*replica)->SaveState(saved).ok());
      if (group.rank() == 0) next = std::move(saved);
    });
    EXPECT_EQ(next.moments, moments) << size << " ranks";
    EXPECT_EQ(next.optimizer_steps, state.optimizer_steps);
    EXPECT_EQ(next.samples_consumed, state.samples_consumed);
    EXPECT_EQ(next.kind, state.kind);
    state = std::move(next);
  }
  auto replica = CreateTorchReplica(options);
  ASSERT_TRUE(replica.ok());
  ASSERT_TRUE((*replica)->LoadState(state).ok());
  ReplicaState last;
  ASSERT_TRUE((*replica)->SaveState(last).ok());
  EXPECT_EQ(last.moments, moments);
}

TEST(RanksTest, AStateThatDoesNotFitIsRefusedByAll) {
  const TorchReplicaOptions options = TinyReplica(TinyDataset("ranks_misfit"));
  WithRanks(2, [&](RankGroup& group) {
    TorchReplicaOptions own = options;
    own.ranks = &group;
    auto replica = CreateTorchReplica(own);
    ASSERT_TRUE(replica.ok());
    ReplicaState state;
    ASSERT_TRUE((*replica)->SaveState(state).ok());
    if (group.rank() == 0) state.moments[0].resize(7);
    const absl::Status loaded = (*replica)->LoadState(state);
    EXPECT_EQ(loaded.code(),
              group.rank() == 0 ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kAborted)
        << loaded;
    EXPECT_TRUE((*replica)->InnerStep(1e-3).ok());
  });
}

TEST(RanksTest, NobodyStepsWhenOneIsNotFinite) {
  const TorchReplicaOptions options = TinyReplica(TinyDataset("ranks_nan"));
  WithRanks(2, [&](RankGroup& group) {
    TorchReplicaOptions own = options;
    own.ranks = &group;
    auto replica = CreateTorchReplica(own);
    ASSERT_TRUE(replica.ok());
    std::vector<float> values = Parameters(**replica);
    const std::vector<float> good = values;
    const FragmentLayout layout = testing::WholeModel((*replica)->manifest());
    if (group.rank() == 1) values[3] = std::nanf("");
    ASSERT_TRUE((*replica)->WriteFragment(layout, values).ok());
    const auto step = (*replica)->InnerStep(1e-3);
    EXPECT_TRUE(absl::IsFailedPrecondition(step.status())) << step.status();
    ASSERT_TRUE((*replica)->WriteFragment(layout, good).ok());
    EXPECT_EQ(Parameters(**replica), good);
    EXPECT_TRUE((*replica)->InnerStep(1e-3).ok());
  });
}

TEST(RankStoreTest, PortInUseNamesTheRemedy) {
  const uint16_t port = FreePort();
  const RankStoreOptions options{
      .host = "127.0.0.1", .port = port, .hosts_store = true, .prefix = "t", .timeout = Seconds(2)};
  const auto first = RankStore::Open(options);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = RankStore::Open(options);
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
  EXPECT_THAT(second.status().message(), HasSubstr("MASTER_PORT"));
}

TEST(RankStoreTest, WaitsForAKeyOnlySoLong) {
  const auto store = RankStore::Open(
      {.host = "127.0.0.1", .port = FreePort(), .hosts_store = true, .prefix = "t", .timeout = Seconds(2)});
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE(absl::IsDeadlineExceeded((*store)->Get("absent", Seconds(0.2)).status()));
  ASSERT_TRUE((*store)->Set("present", "value").ok());
  EXPECT_EQ(*(*store)->Get("present", Seconds(2)), "value");
}

}  // namespace
}  // namespace atl

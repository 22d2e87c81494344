// Steps that are queued on a device and read together: the bits are those of steps that are taken one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/common/fake_clock.h"
#include "tests/core/test_values.h"
#include "tests/worker/torch/tiny_run.h"
#include "worker/torch/torch_replica.h"

namespace atl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Parameters;
using testing::TinyDataset;
using testing::TinyReplica;

/// Does again what was recorded. Nothing was computed at the recording, as in a graph of CUDA.
class Repeating final : public StepGraph {
 public:
  explicit Repeating(int* replays) : replays_(replays) {}
  void Record(std::function<void()> work) override { work_ = std::move(work); }
  void Replay() override {
    if (replays_ != nullptr) ++*replays_;
    work_();
  }

 private:
  int* const replays_;
  std::function<void()> work_;
};

TorchReplicaOptions LikeOnGpu(const std::string& dataset, double clip_norm = 1) {
  TorchReplicaOptions options = TinyReplica(dataset);
  options.run.inner.accumulation = 3;
  options.run.inner.clip_norm = clip_norm;
  options.run.model.gpt().dropout = 0.1;  // drawn anew in each step
  options.as_on_gpu = true;
  return options;
}

std::unique_ptr<TorchReplica> AsOnGpu(const std::string& dataset, double clip_norm = 1) {
  return CreateTorchReplica(LikeOnGpu(dataset, clip_norm)).value();
}

void ExpectEqualStates(TorchReplica& one, TorchReplica& other) {
  EXPECT_EQ(Bits(Parameters(one)), Bits(Parameters(other)));
  EXPECT_EQ(one.samples_consumed(), other.samples_consumed());
  ReplicaState state;
  ReplicaState other_state;
  ASSERT_TRUE(one.SaveState(state).ok());
  ASSERT_TRUE(other.SaveState(other_state).ok());
  EXPECT_EQ(state.optimizer_steps, other_state.optimizer_steps);
  ASSERT_EQ(state.moments.size(), other_state.moments.size());
  for (size_t i = 0; i < state.moments.size(); ++i)
    EXPECT_EQ(Bits(state.moments[i]), Bits(other_state.moments[i])) << "moment " << i;
}

const std::vector<double> kRates = {1e-3, 2e-3, 3e-3, 3e-3, 2.5e-3, 2e-3, 1e-3};

TEST(QueuedSteps, HaveTheBitsOfStepsOneByOne) {
  const std::string dataset = TinyDataset("queued");
  // Norms are clipped always, sometimes and never.
  for (const double clip_norm : {0.01, 1.0, 0.0}) {
    SCOPED_TRACE(clip_norm);
    const auto single = AsOnGpu(dataset, clip_norm);
    const auto queued = AsOnGpu(dataset, clip_norm);
    std::vector<InnerStepResult> expected;
    for (const double rate : kRates) expected.push_back(single->InnerStep(rate).value());
    std::vector<InnerStepResult> results;
    const auto rates = std::span(kRates);
    ASSERT_TRUE(queued->InnerSteps(rates.first(5), results).ok());
    ASSERT_TRUE(queued->InnerSteps(rates.subspan(5), results).ok());
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].loss, expected[i].loss) << "step " << i;
      EXPECT_EQ(results[i].gradient_norm, expected[i].gradient_norm) << "step " << i;
      EXPECT_EQ(results[i].tokens, expected[i].tokens) << "step " << i;
    }
    ExpectEqualStates(*single, *queued);
  }
}

TEST(QueuedSteps, BehindALossThatIsNotFiniteChangeNothing) {
  const std::string dataset = TinyDataset("queued_broken");
  const auto single = AsOnGpu(dataset);
  const auto queued = AsOnGpu(dataset);
  std::vector<double> rates = kRates;
  rates[2] = 1e30;  // the loss of the step behind it is not finite
  std::vector<InnerStepResult> expected;
  absl::Status why;
  for (const double rate : rates) {
    const auto step = single->InnerStep(rate);
    why = step.status();
    if (!why.ok()) break;
    expected.push_back(*step);
  }
  ASSERT_TRUE(absl::IsFailedPrecondition(why)) << why;
  ASSERT_EQ(expected.size(), 3u);

  std::vector<InnerStepResult> results;
  const absl::Status ended = queued->InnerSteps(rates, results);
  EXPECT_EQ(ended, why);
  EXPECT_THAT(std::string(ended.message()), HasSubstr("inner step 4"));
  EXPECT_EQ(results.size(), 3u);
  ExpectEqualStates(*single, *queued);
}

TEST(QueuedSteps, ThatAreReplayedHaveTheSameBits) {
  const std::string dataset = TinyDataset("queued_graph");
  const auto plain = AsOnGpu(dataset);
  TorchReplicaOptions options = LikeOnGpu(dataset);
  int replays = 0;
  options.graph_steps = true;
  options.step_graphs = [&replays] { return std::make_unique<Repeating>(&replays); };
  const auto replayed = CreateTorchReplica(options).value();
  if (replayed->steps_at_once() == 1) return;  // a LibTorch without the fused kernel
  const auto rates = std::span(kRates);
  for (const auto part : {rates.first(3), rates.subspan(3)}) {
    std::vector<InnerStepResult> expected;
    std::vector<InnerStepResult> results;
    ASSERT_TRUE(plain->InnerSteps(part, expected).ok());
    ASSERT_TRUE(replayed->InnerSteps(part, results).ok());
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i].loss, expected[i].loss) << "step " << i;
    ExpectEqualStates(*plain, *replayed);
    // A step between them, one by one, and parameters from elsewhere: the graph computes with what is there.
    ASSERT_TRUE(plain->InnerStep(1e-3).ok());
    ASSERT_TRUE(replayed->InnerStep(1e-3).ok());
    const FragmentLayout whole = testing::WholeModel(plain->manifest());
    std::vector<float> values = Parameters(*plain);
    for (float& value : values) value *= 0.5f;
    ASSERT_TRUE(plain->WriteFragment(whole, values).ok());
    ASSERT_TRUE(replayed->WriteFragment(whole, values).ok());
  }
  EXPECT_EQ(replays, 6) << "the first step is computed, for what libraries allocate at their first use";
}

TEST(QueuedSteps, AreNotReplayedWhereTheWorkDiffers) {
  const std::string dataset = TinyDataset("queued_other_work");
  int graphs = 0;
  const auto graphs_of = [&](const std::function<void(RunOptions&)>& change) {
    TorchReplicaOptions options = LikeOnGpu(dataset);
    change(options.run);
    options.graph_steps = true;
    options.step_graphs = [&graphs] {
      ++graphs;
      return std::make_unique<Repeating>(nullptr);
    };
    const auto replica = CreateTorchReplica(options).value();
    graphs = 0;
    std::vector<InnerStepResult> results;
    EXPECT_TRUE(replica->InnerSteps(kRates, results).ok());
    return replica->steps_at_once() == 1 ? -1 : graphs;
  };
  const int as_usual = graphs_of([](RunOptions&) {});
  if (as_usual < 0) return;  // a LibTorch without the fused kernel
  EXPECT_EQ(as_usual, 1);
  const auto recompute = [](RunOptions& run) { run.inner.activations = Activations::kRecomputed; };
  EXPECT_EQ(graphs_of(recompute), 0) << "dropout would be drawn twice";
  EXPECT_EQ(graphs_of([&](RunOptions& run) {
              recompute(run);
              run.model.gpt().dropout = 0;
            }),
            1);
}

/// Cannot be recorded.
class Rejecting final : public StepGraph {
 public:
  void Record(std::function<void()>) override { throw std::runtime_error("no graph here"); }
  void Replay() override { FAIL() << "nothing was recorded"; }
};

TEST(QueuedSteps, ThatCannotBeRecordedEndWithTheRemedy) {
  const std::string dataset = TinyDataset("queued_no_graph");
  TorchReplicaOptions options = LikeOnGpu(dataset);
  options.graph_steps = true;
  options.step_graphs = [] { return std::make_unique<Rejecting>(); };
  const auto replica = CreateTorchReplica(options).value();
  if (replica->steps_at_once() == 1) return;  // a LibTorch without the fused kernel
  std::vector<InnerStepResult> results;
  const absl::Status ended = replica->InnerSteps(kRates, results);
  EXPECT_EQ(results.size(), 1u) << "the first step is computed";
  EXPECT_THAT(std::string(ended.message()),
              AllOf(HasSubstr("no graph here"), HasSubstr("without --cuda-graph")));
  EXPECT_EQ(replica->samples_consumed(), uint64_t{options.run.inner.batch} * options.run.inner.accumulation);
}

TEST(QueuedSteps, AreAsManyAsAQuarterOfASecondHas) {
  const std::string dataset = TinyDataset("queued_count");
  const FakeClock clock;  // no step takes longer than nothing
  TorchReplicaOptions options = TinyReplica(dataset);
  EXPECT_EQ((*CreateTorchReplica(options))->steps_at_once(), 1u) << "nobody waits for the processor";
  options.as_on_gpu = true;
  options.clock = &clock;
  const auto replica = CreateTorchReplica(options).value();
  if (replica->steps_at_once() == 1) return;  // a LibTorch without the fused kernel
  std::vector<InnerStepResult> results;
  ASSERT_TRUE(replica->InnerSteps(kRates, results).ok());
  EXPECT_EQ(replica->steps_at_once(), 32u);
}

}  // namespace
}  // namespace atl

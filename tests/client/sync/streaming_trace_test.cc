// torchft's fixtures of Streaming DiLoCo: weight 1, two fragments, sync_every 6, inner SGD of rate 1 with
// gradient 2, outer SGD of rate 2. The real loop, with the merge and the outer step of core/.
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/sync/streaming_harness.h"

namespace atl {
namespace {

using ::testing::ElementsAre;

/// Two layers of one weight, whose gradient is 2 everywhere.
class TwoLayers final : public Replica {
 public:
  const Manifest& manifest() const override { return manifest_; }
  absl::Status ReadFragment(const FragmentLayout& fragment, std::span<float> out) override {
    std::fill(out.begin(), out.end(), 0.0F);
    for (const TensorSlot& slot : fragment.slots) out[slot.offset] = weights_[slot.tensor];
    return absl::OkStatus();
  }
  absl::Status WriteFragment(const FragmentLayout& fragment, std::span<const float> values) override {
    for (const TensorSlot& slot : fragment.slots) weights_[slot.tensor] = values[slot.offset];
    return absl::OkStatus();
  }
  absl::StatusOr<InnerStepResult> InnerStep(double learning_rate) override {
    for (size_t i = 0; i < 2; ++i) {
      seen[i].push_back(weights_[i]);
      weights_[i] -= static_cast<float>(learning_rate) * 2;
    }
    if (on_step) on_step(seen[0].size());
    return InnerStepResult{.loss = 1, .gradient_norm = 2, .tokens = 1};
  }
  absl::Status SetPartition(uint32_t, uint32_t) override { return absl::OkStatus(); }
  uint64_t samples_consumed() const override { return seen[0].size(); }
  absl::Status Seek(uint64_t) override { return absl::OkStatus(); }
  absl::Status SaveState(ReplicaState&) override { return absl::OkStatus(); }
  absl::Status LoadState(const ReplicaState&) override { return absl::OkStatus(); }
  absl::StatusOr<EvaluationResult> Evaluate(uint32_t) override { return EvaluationResult{}; }

  std::vector<std::vector<float>> seen{2};  // of each layer, before every inner step
  std::function<void(size_t)> on_step;

 private:
  const Manifest manifest_{
      {{.name = "layers.0.weight", .shape = {1}}, {.name = "layers.1.weight", .shape = {1}}}};
  std::vector<float> weights_ = {1, 1};
};

std::vector<std::vector<float>> Trace(uint32_t delay_steps, double alpha, size_t steps,
                                      FragmentPattern pattern = FragmentPattern::kPacked,
                                      AnswerUse answer = AnswerUse::kBlend) {
  RunOptions run = StreamingRun();
  run.inner.steps = 6;
  run.inner.learning_rate = 1;
  run.outer.learning_rate = 2;
  run.sync.delay_steps = delay_steps;
  run.sync.alpha = alpha;
  run.sync.pattern = pattern;
  run.sync.answer = answer;
  auto layers = std::make_unique<TwoLayers>();
  TwoLayers* const seen = layers.get();
  StreamingHarness h(std::move(layers), run);
  seen->on_step = [&](size_t step) {
    if (step == steps) h.worker_status.RequestStop();
  };
  const auto end = h.Start().Run();
  EXPECT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(*end, SyncEnd::kStopped);
  return seen->seen;
}

TEST(StreamingTrace, WithoutDelayTheOuterStepReplacesTheLayer) {
  const auto layers = Trace(0, 0, 10);
  EXPECT_THAT(layers[0], ElementsAre(1, -1, -3, -11, -13, -15, -17, -19, -21, -35));
  // Layer 1 is exchanged three steps later: base 1, local -11, delta 12, theta -23.
  EXPECT_THAT(layers[1], ElementsAre(1, -1, -3, -5, -7, -9, -23, -25, -27, -29));
}

TEST(StreamingTrace, ADelayOfOneStepIsBlendedIn) {
  const auto layers = Trace(1, 0.5, 10);
  EXPECT_THAT(layers[0], ElementsAre(1, -1, -3, -6, -8, -10, -12, -14, -16, -21.5F));
  // Pushed after step 5: local -9, delta 10, theta -19; after step 6: (-11 - 19) / 2.
  EXPECT_THAT(layers[1], ElementsAre(1, -1, -3, -5, -7, -9, -15, -17, -19, -21));
}

TEST(StreamingTrace, WhatWasLearntMeanwhileIsRebased) {
  const auto layers = Trace(1, 0.5, 10, FragmentPattern::kPacked, AnswerUse::kRebase);
  // Pushed after step 2: local -3, delta 4, theta -7; after step 3: -7 + (-5 + 3).
  // Pushed after step 8: local -19, delta 12, theta -31; after step 9: -31 + (-21 + 19).
  EXPECT_THAT(layers[0], ElementsAre(1, -1, -3, -9, -11, -13, -15, -17, -19, -33));
  // Pushed after step 5: local -9, delta 10, theta -19; after step 6: -19 + (-11 + 9).
  EXPECT_THAT(layers[1], ElementsAre(1, -1, -3, -5, -7, -9, -21, -23, -25, -27));
  EXPECT_EQ(Trace(0, 0.5, 20, FragmentPattern::kPacked, AnswerUse::kRebase), Trace(0, 0, 20))
      << "without delay there is nothing to rebase";
}

TEST(StreamingTrace, ThePatternMakesNoDifferenceWhenFragmentsAreTheSame) {
  EXPECT_EQ(Trace(1, 0.5, 20, FragmentPattern::kStrided), Trace(1, 0.5, 20));
}

}  // namespace
}  // namespace atl

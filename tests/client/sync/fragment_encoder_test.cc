#include "client/sync/fragment_encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "client/sync/host_fragment_encoder.h"
#include "client/sync/pseudo_gradient_encoder.h"
#include "core/codec.h"
#include "core/error_feedback.h"
#include "tests/client/sync/fake_replica.h"
#include "tests/client/sync/streaming_harness.h"

namespace atl {
namespace {

/// Measures into memory of its own, as an encoder on a device does, and never touches the host's.
class OwnEncoder final : public FragmentEncoder {
 public:
  OwnEncoder(const EncoderOptions& options, int* encoded)
      : delta_(options.elements),
        feedback_(CodecFor(options.codec), options.beta, options.elements, options.form),
        encoded_(encoded) {}

  absl::Status Measure(const FragmentLayout& fragment, std::span<const float> base, Replica& replica,
                       std::span<float>) override {
    const absl::Status read = replica.ReadFragment(fragment, delta_);
    for (size_t i = 0; i < delta_.size(); ++i) delta_[i] = base[i] - delta_[i];
    return read;
  }
  absl::Status Encode(std::span<float>, std::span<std::byte> payload) override {
    ++*encoded_;
    return feedback_.Encode(delta_, payload);
  }
  void GiveBack(std::span<const std::byte> payload) override { feedback_.GiveBack(payload); }
  std::span<const float> residual() const override { return feedback_.residual(); }
  absl::Status Restore(std::span<const float> residual) override { return feedback_.Restore(residual); }
  void Reset() override { feedback_.Reset(); }

 private:
  std::vector<float> delta_;
  ErrorFeedback feedback_;
  int* const encoded_;
};

/// A FakeReplica that encodes by itself.
class EncodingReplica final : public Replica {
 public:
  const Manifest& manifest() const override { return inner.manifest(); }
  absl::Status ReadFragment(const FragmentLayout& fragment, std::span<float> out) override {
    return inner.ReadFragment(fragment, out);
  }
  absl::Status WriteFragment(const FragmentLayout& fragment, std::span<const float> values) override {
    return inner.WriteFragment(fragment, values);
  }
  std::unique_ptr<FragmentEncoder> MakeEncoder(const EncoderOptions& options) override {
    return std::make_unique<OwnEncoder>(options, &encoded);
  }
  absl::StatusOr<InnerStepResult> InnerStep(double learning_rate) override {
    return inner.InnerStep(learning_rate);
  }
  absl::Status SetPartition(uint32_t partition, uint32_t partitions) override {
    return inner.SetPartition(partition, partitions);
  }
  uint64_t samples_consumed() const override { return inner.samples_consumed(); }
  absl::Status Seek(uint64_t samples) override { return inner.Seek(samples); }
  absl::Status SaveState(ReplicaState& state) override { return inner.SaveState(state); }
  absl::Status LoadState(const ReplicaState& state) override { return inner.LoadState(state); }
  absl::StatusOr<EvaluationResult> Evaluate(uint32_t batches) override { return inner.Evaluate(batches); }

  FakeReplica inner{5.0F};
  int encoded = 0;
};

RunOptions LossyRun(AnswerUse answer) {
  RunOptions run = StreamingRun();
  run.push_codec = CodecKind::kInt4;
  run.sync.answer = answer;
  return run;
}

/// Twelve inner steps.
void RunOn(FakeReplica& fake, StreamingHarness& h) {
  fake.target_of = [](size_t tensor, size_t i) {
    return static_cast<float>(tensor) + 0.01F * static_cast<float>(i);
  };
  fake.on_step = [&h](uint64_t step) {
    if (step == 12) h.worker_status.RequestStop();
    return absl::OkStatus();
  };
  const auto end = h.Start().Run();
  ASSERT_TRUE(end.ok()) << end.status();
}

TEST(FragmentEncoder, AReplicaEncodesByItselfAndPushesTheSameBytes) {
  for (const AnswerUse answer : {AnswerUse::kBlend, AnswerUse::kRebase}) {
    StreamingHarness host(LossyRun(answer));
    RunOn(*host.fake, host);
    auto replica = std::make_unique<EncodingReplica>();
    EncodingReplica& own = *replica;
    StreamingHarness device(std::unique_ptr<Replica>(std::move(replica)), LossyRun(answer));
    RunOn(own.inner, device);
    EXPECT_EQ(own.encoded, 6) << "three pushes of each fragment";
    EXPECT_EQ(host.coordinator.payloads(), device.coordinator.payloads());
    EXPECT_TRUE(std::ranges::equal(host.sync->encoder(0).residual(), device.sync->encoder(0).residual()));
  }
}

TEST(FragmentEncoder, OnTheHostItIsTheErrorFeedbackOfBaseMinusLocal) {
  FakeReplica replica(5.0F);
  const FragmentLayout layout = PlanFragments(replica.manifest(), 1)->front();
  const std::vector<float> base(layout.elements, 1.5F);
  RunOptions run = LossyRun(AnswerUse::kBlend);
  const Codec& codec = CodecFor(run.push_codec);
  HostFragmentEncoder encoder(EncoderOptions::Of(run, layout.elements));
  ErrorFeedback feedback(codec, run.error_feedback_beta, layout.elements);
  std::vector<float> room(layout.elements), local(layout.elements), delta(layout.elements);
  std::vector<std::byte> payload(codec.EncodedSize(layout.elements)), expected(payload.size());
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(replica.InnerStep(0.1).ok());
    ASSERT_TRUE(replica.ReadFragment(layout, local).ok());
    for (size_t i = 0; i < delta.size(); ++i) delta[i] = base[i] - local[i];
    ASSERT_TRUE(feedback.Encode(delta, expected).ok());
    ASSERT_TRUE(encoder.Measure(layout, base, replica, room).ok());
    ASSERT_TRUE(encoder.Encode(room, payload).ok());
    EXPECT_EQ(payload, expected) << "round " << round;
    EXPECT_TRUE(std::ranges::equal(encoder.residual(), feedback.residual()));
  }
}

TEST(FragmentEncoder, AveragedTensorsOfAFragmentHaveNoResidual) {
  FakeReplica replica(5.0F);
  FragmentLayout layout = PlanFragments(replica.manifest(), 1)->front();
  layout.slots[0].averaged = true;
  std::vector<PseudoGradientEncoder> encoders = MakeEncoders(LossyRun(AnswerUse::kBlend), {layout}, replica);
  std::vector<float> delta(layout.elements);
  for (const TensorSlot& slot : layout.slots) {
    for (uint64_t i = 0; i < slot.elements; ++i) delta[slot.offset + i] = 1.0F / static_cast<float>(3 + i);
  }
  const auto lost = [&](const TensorSlot& slot) {
    const std::span<const float> part = encoders[0].residual().subspan(slot.offset, slot.elements);
    return std::ranges::any_of(part, [](float value) { return value != 0; });
  };
  ASSERT_TRUE(encoders[0].Encode({}, delta).ok());
  EXPECT_FALSE(lost(layout.slots[0]));
  EXPECT_TRUE(lost(layout.slots[1])) << "int4 loses something";
  encoders[0].Settle(Verdict::kLost);
  EXPECT_FALSE(lost(layout.slots[0]));
  EXPECT_TRUE(lost(layout.slots[1]));
}

}  // namespace
}  // namespace atl

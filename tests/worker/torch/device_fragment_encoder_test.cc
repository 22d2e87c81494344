#include "worker/torch/device_fragment_encoder.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "client/sync/host_fragment_encoder.h"
#include "client/sync/pseudo_gradient_encoder.h"
#include "client/sync/replica.h"
#include "core/codec.h"
#include "core/fragment_plan.h"
#include "tests/core/test_values.h"
#include "tests/worker/cuda/executor_queue.h"
#include "tests/worker/torch/tiny_run.h"
#include "worker/torch/torch_replica.h"

namespace atl {
namespace {

/// Parameters to read, for HostFragmentEncoder.
class Reading final : public Replica {
 public:
  explicit Reading(const FlatParameters& parameters) : parameters_(parameters) {}
  const Manifest& manifest() const override { return parameters_.manifest(); }
  absl::Status ReadFragment(const FragmentLayout& fragment, std::span<float> out) override {
    parameters_.CopyOut(fragment, out);
    return absl::OkStatus();
  }
  absl::Status WriteFragment(const FragmentLayout&, std::span<const float>) override { return None(); }
  absl::StatusOr<InnerStepResult> InnerStep(double) override { return None(); }
  absl::Status SetPartition(uint32_t, uint32_t) override { return None(); }
  uint64_t samples_consumed() const override { return 0; }
  absl::Status Seek(uint64_t) override { return None(); }
  absl::Status SaveState(ReplicaState&) override { return None(); }
  absl::Status LoadState(const ReplicaState&) override { return None(); }
  absl::StatusOr<EvaluationResult> Evaluate(uint32_t) override { return None(); }

 private:
  static absl::Status None() { return absl::UnimplementedError("it only reads"); }
  const FlatParameters& parameters_;
};

const Manifest kManifest = {
    .tensors = {{"a", {40, 30}}, {"b", {7}}, {"c", {100, 50}}, {"d", {300}, false, true}, {"e", {64, 64}}}};

/// Pushes of every fragment of a plan, on the device and on the host, three rounds long.
void Compare(uint32_t fragments, CodecKind codec, ErrorFeedbackForm form) {
  torch::manual_seed(fragments);
  const auto parameters = FlatParameters::Create(kManifest, torch::kCPU);
  ASSERT_TRUE(parameters.ok());
  Reading replica(*parameters);
  const auto plan = PlanFragments(kManifest, fragments);
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const FragmentLayout& layout : *plan) {
    const EncoderOptions options = {.elements = layout.elements,
                                    .averaged = AveragedRanges(layout),
                                    .codec = codec,
                                    .beta = 0.8,
                                    .form = form,
                                    .privacy = {},
                                    .noise = nullptr};
    HostFragmentEncoder host(options);
    auto device =
        DeviceFragmentEncoder::Create(options, *parameters, std::make_unique<device::ExecutorQueue>());
    ASSERT_TRUE(device.ok()) << device.status();
    std::vector<float> base(layout.elements);
    std::vector<float> room(layout.elements);
    std::vector<std::byte> expected(CodecFor(codec).EncodedSize(layout.elements));
    std::vector<std::byte> payload(expected.size());
    for (int round = 0; round < 3; ++round) {
      for (size_t i = 0; i < kManifest.tensors.size(); ++i) parameters->view(i).data().normal_();
      ASSERT_TRUE((*device)->Measure(layout, base, replica, {}).ok());
      ASSERT_TRUE((*device)->Encode({}, payload).ok());
      ASSERT_TRUE(host.Measure(layout, base, replica, room).ok());
      ASSERT_TRUE(host.Encode(room, expected).ok());
      ASSERT_EQ(payload, expected);
      if (round == 1) {
        host.GiveBack(payload);
        (*device)->GiveBack(payload);
      }
      ASSERT_EQ(Bits((*device)->residual()), Bits(host.residual()));
    }
  }
}

TEST(DeviceFragmentEncoderTest, HasTheBitsOfTheHostsEncoder) {
  for (const CodecKind codec : {CodecKind::kE3m0, CodecKind::kInt8, CodecKind::kTopK64}) {
    for (const uint32_t fragments : {1, 3}) Compare(fragments, codec, ErrorFeedbackForm::kCarry);
  }
  Compare(2, CodecKind::kBf16, ErrorFeedbackForm::kMovingAverage);
}

struct InFlight {
  std::unique_ptr<FragmentEncoder> encoder;
  std::vector<float> room;
  std::vector<std::byte> payload;
};

/// Trains as in overlapped mode: each fragment is measured in another step, and encoded while the next steps
/// change the parameters and another fragment is under way. Returns all payloads and residuals, one after the
/// other.
std::vector<std::vector<std::byte>> PushesOfOverlappedTraining(const std::string& dataset,
                                                               DeviceQueueFactory queues) {
  TorchReplicaOptions options = testing::TinyReplica(dataset);
  options.run.push_codec = CodecKind::kInt4;
  options.run.error_feedback_beta = 0.9;
  options.device_queues = std::move(queues);
  auto replica = CreateTorchReplica(options);
  EXPECT_TRUE(replica.ok()) << replica.status();
  const auto plan = PlanFragments((*replica)->manifest(), 3);
  std::vector<InFlight> pushes;
  for (const FragmentLayout& layout : *plan) {
    pushes.push_back(
        {.encoder = (*replica)->MakeEncoder(EncoderOptions::Of(options.run, layout)),
         .room = std::vector<float>(layout.elements),
         .payload = std::vector<std::byte>(CodecFor(options.run.push_codec).EncodedSize(layout.elements))});
  }
  std::vector<std::vector<std::byte>> results;
  for (size_t step = 0; step < 4 * pushes.size(); ++step) {
    EXPECT_TRUE((*replica)->InnerStep(1e-2).ok());
    const size_t now = step % pushes.size();
    const std::vector<float> base((*plan)[now].elements, 0.25f);
    EXPECT_TRUE(pushes[now].encoder->Measure((*plan)[now], base, **replica, pushes[now].room).ok());
    if (step == 0) continue;
    InFlight& before = pushes[(step - 1) % pushes.size()];
    EXPECT_TRUE(before.encoder->Encode(before.room, before.payload).ok());
    results.push_back(before.payload);
    const auto residual = std::as_bytes(before.encoder->residual());
    results.emplace_back(residual.begin(), residual.end());
  }
  return results;
}

TEST(DeviceFragmentEncoderTest, SeveralFragmentsAreUnderWayDuringTraining) {
  const std::string dataset = testing::TinyDataset("device_pushes");
  const auto expected = PushesOfOverlappedTraining(dataset, {});
  const auto payloads = PushesOfOverlappedTraining(
      dataset, [] { return std::make_unique<device::ExecutorQueue>(SIZE_MAX, device::When::kAtOnce); });
  EXPECT_EQ(payloads.size(), 22u);
  EXPECT_EQ(payloads, expected);
}

/// The payloads of six versions of the first of two fragments. The residual is reset after each second
/// version.
std::vector<std::vector<std::byte>> PushesWithResets(const std::string& dataset, DeviceQueueFactory queues) {
  TorchReplicaOptions options = testing::TinyReplica(dataset);
  options.run.push_codec = CodecKind::kInt4;
  options.run.error_feedback_reset = 2;
  options.device_queues = std::move(queues);
  auto replica = CreateTorchReplica(options);
  EXPECT_TRUE(replica.ok()) << replica.status();
  const auto plan = PlanFragments((*replica)->manifest(), 2);
  FragmentBase base;
  base.layout = plan->front();
  base.values.assign(base.layout.elements, 0.25f);
  PseudoGradientEncoder encoder(options.run, base.layout, **replica);
  std::vector<float> room;
  std::vector<std::vector<std::byte>> payloads;
  for (uint64_t version = 0; version < 6; ++version) {
    base.version = Version(version);
    EXPECT_TRUE((*replica)->InnerStep(1e-2).ok());
    EXPECT_TRUE(encoder.EncodeRound(base, {}, **replica, std::nullopt, room).ok());
    payloads.emplace_back(encoder.payload().begin(), encoder.payload().end());
  }
  return payloads;
}

TEST(DeviceFragmentEncoderTest, AResetComesBeforeTheDeviceEncodes) {
  const std::string dataset = testing::TinyDataset("device_resets");
  const auto payloads = PushesWithResets(
      dataset, [] { return std::make_unique<device::ExecutorQueue>(SIZE_MAX, device::When::kAtOnce); });
  EXPECT_EQ(payloads, PushesWithResets(dataset, {}));
}

TEST(DeviceFragmentEncoderTest, LeavesPrivacyToTheProcessor) {
  const auto parameters = FlatParameters::Create(kManifest, torch::kCPU);
  ASSERT_TRUE(parameters.ok());
  EncoderOptions options = {.elements = 256, .privacy = {.clip_norm = 1}, .noise = nullptr};
  const auto encoder =
      DeviceFragmentEncoder::Create(options, *parameters, std::make_unique<device::ExecutorQueue>());
  EXPECT_EQ(encoder.status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace atl

#include "worker/cuda/device_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/error_feedback.h"
#include "core/memory_plan.h"
#include "tests/core/test_values.h"
#include "tests/worker/cuda/executor_queue.h"
#include "tests/worker/cuda/push_fixture.h"

namespace atl::device {
namespace {

using testing::HasSubstr;

constexpr uint64_t kElements = 4096 + 512;

DeviceEncoder::Options OptionsOf(CodecKind codec, ErrorFeedbackForm form = ErrorFeedbackForm::kCarry) {
  return {.elements = kElements,
          .codec = codec,
          .beta = 0.8,
          .form = form,
          .averaged = {{256, 512}, {4096, 4352}}};
}

/// Both on the same inputs.
class Pair {
 public:
  explicit Pair(const DeviceEncoder::Options& options)
      : host_(CodecFor(options.codec), options.beta, options.elements, options.form, options.averaged),
        device_(*DeviceEncoder::Create(options, queue_)),
        payload_(CodecFor(options.codec).EncodedSize(options.elements)) {}

  void Push(const PushInput& input) {
    std::vector<float> delta(kElements);
    for (size_t i = 0; i < kElements; ++i) delta[i] = input.base[i] - input.local[i];
    std::vector<std::byte> expected(payload_.size());
    ASSERT_TRUE(host_.Encode(delta, expected).ok());
    // The base of the caller may change once Begin has returned.
    std::vector<float> base = input.base;
    ASSERT_TRUE(device_->Begin(base, input.local.data()).ok());
    base.assign(kElements, 7);
    ASSERT_TRUE(device_->End(payload_).ok());
    EXPECT_EQ(payload_, expected);
    ExpectEqualResiduals();
  }
  void GiveBack() {
    host_.GiveBack(payload_);
    ASSERT_TRUE(device_->GiveBack(payload_).ok());
    ExpectEqualResiduals();
  }
  void ExpectEqualResiduals() { EXPECT_EQ(Bits(device_->residual()), Bits(host_.residual())); }

  DeviceEncoder& device() { return *device_; }
  ErrorFeedback& host() { return host_; }
  ExecutorQueue& queue() { return queue_; }
  std::span<std::byte> payload() { return payload_; }

 private:
  ExecutorQueue queue_;
  ErrorFeedback host_;
  std::unique_ptr<DeviceEncoder> device_;
  std::vector<std::byte> payload_;
};

/// Device memory of the parameters is aligned.
PushInput InputOf(uint64_t seed) { return PushInput::Of(Input::kRandom, kElements, seed); }

TEST(DeviceEncoderTest, HasTheBitsOfErrorFeedbackOverPushes) {
  for (const CodecKind codec : {CodecKind::kInt8, CodecKind::kE3m0, CodecKind::kTopK64}) {
    for (const ErrorFeedbackForm form : {ErrorFeedbackForm::kCarry, ErrorFeedbackForm::kMovingAverage}) {
      Pair pair(OptionsOf(codec, form));
      for (uint64_t push = 0; push < 3; ++push) pair.Push(InputOf(push));
      pair.GiveBack();
      pair.Push(InputOf(9));
      ASSERT_TRUE(pair.device().Reset().ok());
      pair.host().Reset();
      pair.Push(InputOf(10));
    }
  }
}

TEST(DeviceEncoderTest, KeepsTheResidualOfAPushThatIsNotFinite) {
  Pair pair(OptionsOf(CodecKind::kInt4));
  pair.Push(InputOf(1));
  PushInput bad = InputOf(2);
  bad.local[4500] = std::numeric_limits<float>::infinity();
  ASSERT_TRUE(pair.device().Begin(bad.base, bad.local.data()).ok());
  const absl::Status status = pair.device().End(pair.payload());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("element 4500 of the pseudo-gradient is not finite"));
  pair.ExpectEqualResiduals();
  pair.Push(InputOf(3));
}

TEST(DeviceEncoderTest, RestoresAResidual) {
  Pair pair(OptionsOf(CodecKind::kBf16));
  std::vector<float> kept = InputOf(5).residual;
  ASSERT_TRUE(pair.host().Restore(kept).ok());
  ASSERT_TRUE(pair.device().Restore(kept).ok());
  pair.ExpectEqualResiduals();
  kept[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(std::string(pair.device().Restore(kept).message()), HasSubstr("element 3 is not finite"));
  EXPECT_THAT(std::string(pair.device().Restore(std::span(kept).first(9)).message()),
              HasSubstr("has 9 values"));
  pair.Push(InputOf(6));
}

TEST(DeviceEncoderTest, HasSeveralFragmentsUnderWay) {
  ExecutorQueue queue;
  const DeviceEncoder::Options options = OptionsOf(CodecKind::kTopK128);
  std::vector<std::unique_ptr<DeviceEncoder>> encoders;
  std::vector<PushInput> inputs;
  for (uint64_t i = 0; i < 3; ++i) {
    encoders.push_back(*DeviceEncoder::Create(options, queue));
    inputs.push_back(InputOf(20 + i));
  }
  for (size_t i = 0; i < 3; ++i) ASSERT_TRUE(encoders[i]->Begin(inputs[i].base, inputs[i].local.data()).ok());
  for (size_t i = 3; i-- > 0;) {
    ErrorFeedback host(CodecFor(options.codec), options.beta, kElements, options.form, options.averaged);
    std::vector<float> delta(kElements);
    for (size_t k = 0; k < kElements; ++k) delta[k] = inputs[i].base[k] - inputs[i].local[k];
    std::vector<std::byte> expected(CodecFor(options.codec).EncodedSize(kElements));
    std::vector<std::byte> payload(expected.size());
    ASSERT_TRUE(host.Encode(delta, expected).ok());
    ASSERT_TRUE(encoders[i]->End(payload).ok());
    EXPECT_EQ(payload, expected);
  }
}

TEST(DeviceEncoderTest, SaysWhatItAllocates) {
  ExecutorQueue queue;
  const DeviceEncoder::Options options = OptionsOf(CodecKind::kInt8);
  const auto encoder = DeviceEncoder::Create(options, queue);
  ASSERT_TRUE(encoder.ok());
  EXPECT_EQ(queue.device_bytes(), DeviceEncoder::MemoryOf(options).device);
  EXPECT_EQ(queue.pinned_bytes(), DeviceEncoder::MemoryOf(options).pinned);
}

TEST(DeviceEncoderTest, RejectsWrongUse) {
  ExecutorQueue small(1000);
  EXPECT_EQ(DeviceEncoder::Create(OptionsOf(CodecKind::kInt8), small).status().code(),
            absl::StatusCode::kResourceExhausted);
  ExecutorQueue queue;
  EXPECT_EQ(DeviceEncoder::Create(OptionsOf(CodecKind::kInt8Quantile), queue).status().code(),
            absl::StatusCode::kUnimplemented);
  Pair pair(OptionsOf(CodecKind::kInt8));
  const PushInput input = InputOf(1);
  EXPECT_EQ(pair.device().End(pair.payload()).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(pair.device().Begin(std::span(input.base).first(1), input.local.data()).code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(pair.device().Begin(input.base, input.local.data()).ok());
  pair.Push(InputOf(2));  // the push under way is dropped
}

TEST(DeviceEncoderTest, ABaseOnTheDeviceCountsForOnePush) {
  ExecutorQueue queue(SIZE_MAX, When::kAtOnce);
  const auto encoder = DeviceEncoder::Create(OptionsOf(CodecKind::kFp32), queue).value();
  std::vector<float> payload(kElements);
  const std::vector<float> base(kElements, 8);
  std::vector<float> local(kElements, 3);
  ASSERT_TRUE(encoder->TakeBase(local.data()).ok());
  local.assign(kElements, 1);
  const auto pushed = [&] {
    EXPECT_TRUE(encoder->Begin(base, local.data()).ok());
    EXPECT_TRUE(encoder->End(std::as_writable_bytes(std::span(payload))).ok());
    return payload[300];  // of a range without a residual
  };
  EXPECT_EQ(pushed(), 2);
  EXPECT_EQ(pushed(), 7) << "the caller's base again";
}

TEST(DeviceEncoderTest, PlanCountsItsMemory) {
  const Manifest manifest = {
      .tensors = {{"a", {40, 30}}, {"b", {7}}, {"c", {100, 50}}, {"d", {300}, false, true}, {"e", {64, 64}}}};
  RunOptions run;
  run.push_codec = CodecKind::kInt4;
  for (const uint32_t fragments : {1, 3}) {
    run.sync.fragments = fragments;
    uint64_t elements = 0;
    DeviceEncoder::Memory memory;
    const auto layouts = PlanFragments(manifest, fragments);
    for (const FragmentLayout& layout : *layouts) {
      const auto one = DeviceEncoder::MemoryOf({.elements = layout.elements, .codec = run.push_codec});
      // Several fragments are gathered first (worker/torch/device_fragment_encoder.h).
      memory.device += one.device + (fragments > 1 ? layout.elements * sizeof(float) : 0);
      memory.pinned += one.pinned;
      elements += layout.elements;
    }
    const WorkerMemory planned = PlanWorkerMemory(run, elements, elements);
    // Two numbers of each fragment are rounded up or not counted.
    EXPECT_NEAR(static_cast<double>(planned.device_encoders), static_cast<double>(memory.device), 48);
    EXPECT_NEAR(static_cast<double>(planned.pinned), static_cast<double>(memory.pinned), 48);
  }
  run.push_codec = CodecKind::kInt8Quantile;
  EXPECT_EQ(PlanWorkerMemory(run, 8192, 8192).device_encoders, 0u);
}

}  // namespace
}  // namespace atl::device

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "core/codec.h"
#include "core/delta.h"
#include "core/error_feedback.h"
#include "tests/core/test_values.h"
#include "tests/worker/cuda/device_array.h"
#include "tests/worker/cuda/device_push_memory.h"
#include "tests/worker/cuda/push_fixture.h"
#include "worker/cuda/cuda_queue.h"
#include "worker/cuda/device_encoder.h"
#include "worker/cuda/kernel_launch.h"

// The comparisons of kernels_test.cc on a GPU, through the launches.

namespace atl::device {
namespace {

constexpr uint64_t kSizes[] = {1, 255, 257, 4095, 4097, 9001, (1 << 20) + 77};

absl::StatusOr<PushOutput> PushOnGpu(const PushLaunch& launch, const PushInput& input) {
  const uint64_t elements = input.base.size();
  const DevicePushMemory memory(launch.codec, elements);
  memory.base.Fill(input.base);
  memory.local.Fill(input.local);
  memory.residual.Fill(input.residual);
  const absl::Status status = QueuePush(launch.codec, memory.Push(launch.beta, launch.form), nullptr);
  if (!status.ok()) return status;
  CheckCuda(cudaDeviceSynchronize(), "push");
  if (const auto first_bad = memory.first_bad.Values()[0]; first_bad != elements)
    return absl::InvalidArgumentError(std::to_string(first_bad));
  PushOutput output;
  const std::vector<uint8_t> bytes = memory.payload.Values();
  output.payload.resize(bytes.size());
  std::memcpy(output.payload.data(), bytes.data(), bytes.size());
  output.residual = memory.next.Values();
  output.squares = memory.squares.Values();
  for (const double chunk : output.squares) output.total += chunk;
  return output;
}

class DeviceKernelsTest : public testing::TestWithParam<CodecKind> {
 protected:
  void SetUp() override {
    if (!HasDevice()) GTEST_SKIP() << "needs a GPU and its driver";
  }
};

void ExpectEqualPushes(CodecKind codec, std::span<const Input> inputs, std::span<const uint64_t> sizes) {
  for (const Input kind : inputs) {
    for (const uint64_t elements : sizes) {
      for (const ErrorFeedbackForm form : {ErrorFeedbackForm::kCarry, ErrorFeedbackForm::kMovingAverage}) {
        SCOPED_TRACE(testing::Message()
                     << "input " << static_cast<int>(kind) << ", " << elements << " values");
        const PushInput input = PushInput::Of(kind, elements, elements);
        const PushLaunch launch = {.codec = codec, .form = form};
        const auto host = PushOnHost(launch, input);
        ASSERT_TRUE(host.ok()) << host.status();
        const auto device = PushOnGpu(launch, input);
        ASSERT_TRUE(device.ok()) << device.status();
        ASSERT_EQ(Difference(*device, *host), "");
      }
    }
  }
}

TEST_P(DeviceKernelsTest, APushHasTheBitsOfTheCodec) { ExpectEqualPushes(GetParam(), kInputs, kSizes); }

// For compute-sanitizer, under which a launch takes a hundred times as long.
TEST_P(DeviceKernelsTest, ASmallPushHasTheBitsOfTheCodec) {
  const Input inputs[] = {Input::kMixed};
  const uint64_t sizes[] = {1, 9001};
  ExpectEqualPushes(GetParam(), inputs, sizes);
}

TEST_P(DeviceKernelsTest, ValuesThatAreNotFiniteAreFound) {
  PushInput input = PushInput::Of(Input::kRandom, 9001, 9);
  input.local[4321] = std::numeric_limits<float>::quiet_NaN();
  input.base[9000] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(PushOnGpu({.codec = GetParam()}, input).status().message(), "4321");
}

TEST_P(DeviceKernelsTest, ADeltaIsAddedAsByTheCodec) {
  const Codec& codec = CodecFor(GetParam());
  for (const uint64_t elements : kSizes) {
    const PushInput input = PushInput::Of(Input::kMixed, elements, elements + 1);
    std::vector<std::byte> payload(codec.EncodedSize(elements));
    codec.Encode(input.residual, payload);
    std::vector<float> host = input.base;
    host[0] = -0.0f;
    const DeviceArray<float> values{std::span<const float>(host)};
    const DeviceArray<uint8_t> bytes(
        std::span(reinterpret_cast<const uint8_t*>(payload.data()), payload.size()));
    ASSERT_TRUE(QueueAdd(GetParam(), bytes.data(), elements, values.data(), nullptr).ok());
    ApplyDelta(codec, payload, host);
    const std::vector<float> device = values.Values();
    ASSERT_EQ(Bits(device), Bits(host)) << elements << " values";
  }
}

TEST_P(DeviceKernelsTest, AnEncoderHasTheBitsOfErrorFeedback) {
  constexpr uint64_t kElements = 100 * 4096 + 256;
  const auto queue = CreateCudaQueue(0, nullptr);
  ASSERT_TRUE(queue.ok()) << queue.status();
  const DeviceEncoder::Options options = {
      .elements = kElements, .codec = GetParam(), .beta = 0.8, .averaged = {{256, 1024}}};
  const auto encoder = DeviceEncoder::Create(options, **queue);
  ASSERT_TRUE(encoder.ok()) << encoder.status();
  ErrorFeedback host(CodecFor(GetParam()), options.beta, kElements, options.form, options.averaged);
  for (uint64_t push = 0; push < 3; ++push) {
    const PushInput input = PushInput::Of(Input::kRandom, kElements, push);
    std::vector<float> delta(kElements);
    for (size_t i = 0; i < kElements; ++i) delta[i] = input.base[i] - input.local[i];
    std::vector<std::byte> expected(CodecFor(GetParam()).EncodedSize(kElements));
    std::vector<std::byte> payload(expected.size());
    ASSERT_TRUE(host.Encode(delta, expected).ok());
    const DeviceArray<float> local{std::span<const float>(input.local)};
    ASSERT_TRUE((*encoder)->Begin(input.base, local.data()).ok());
    // The next step changes the parameters behind the push.
    CheckCuda(cudaMemsetAsync(local.data(), 0, kElements * sizeof(float)), "cudaMemsetAsync");
    ASSERT_TRUE((*encoder)->End(payload).ok());
    ASSERT_EQ(payload, expected);
    ASSERT_EQ(Bits((*encoder)->residual()), Bits(host.residual()));
  }
}

std::vector<CodecKind> CodecsWithKernels() {
  std::vector<CodecKind> codecs;
  for (const CodecKind codec : kCodecKinds) {
    if (HasKernels(codec)) codecs.push_back(codec);
  }
  return codecs;
}

INSTANTIATE_TEST_SUITE_P(Codecs, DeviceKernelsTest, testing::ValuesIn(CodecsWithKernels()),
                         [](const auto& param) { return std::string(CodecName(param.param)); });

}  // namespace
}  // namespace atl::device

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <set>
#include <vector>

#include "core/codec.h"
#include "core/delta.h"
#include "tests/worker/cuda/push_fixture.h"

namespace atl::device {
namespace {

constexpr CodecKind kDeviceCodecs[] = {CodecKind::kFp32,       CodecKind::kFp16,    CodecKind::kBf16,
                                       CodecKind::kInt8,       CodecKind::kInt4,    CodecKind::kE3m0,
                                       CodecKind::kTopK64,     CodecKind::kTopK128, CodecKind::kTopK64Bf16,
                                       CodecKind::kTopK128Bf16};
constexpr uint64_t kSizes[] = {1, 7, 255, 257, 1023, 4095, 4096, 4097, 9001};

// A switch between fibers takes two system calls under AddressSanitizer: fewer cases of each codec.
#ifdef __SANITIZE_ADDRESS__
constexpr uint64_t kOneIn = 7;
constexpr uint64_t kSchedules = 1;
constexpr uint32_t kThreads[] = {64, 128, 32};
#else
constexpr uint64_t kOneIn = 1;
constexpr uint64_t kSchedules = 6;
constexpr uint32_t kThreads[] = {64, 256, 128, 512, 1024};
#endif

class KernelsTest : public testing::TestWithParam<CodecKind> {
 protected:
  /// Another form, size of a block and schedule with every call.
  PushLaunch NextLaunch() {
    const uint64_t call = calls_++;
    return {.codec = GetParam(),
            .form = call % 2 == 0 ? ErrorFeedbackForm::kCarry : ErrorFeedbackForm::kMovingAverage,
            .beta = call % 3 == 0 ? 1.0 : 0.8,
            .threads = kThreads[call % std::size(kThreads)],
            .seed = call};
  }

 private:
  uint64_t calls_ = 0;
};

TEST_P(KernelsTest, APushHasTheBitsOfTheCodec) {
  for (const Input kind : kInputs) {
    for (const uint64_t elements : kSizes) {
      const PushLaunch launch = NextLaunch();
      if ((launch.seed + static_cast<uint64_t>(launch.codec)) % kOneIn != 0) continue;
      const PushInput input = PushInput::Of(kind, elements, elements);
      SCOPED_TRACE(testing::Message() << "input " << static_cast<int>(kind) << ", " << elements << " values, "
                                      << launch.threads << " threads, seed " << launch.seed);
      const auto host = PushOnHost(launch, input);
      ASSERT_TRUE(host.ok()) << host.status();
      const auto device = PushOnDevice(launch, input);
      ASSERT_TRUE(device.ok()) << device.status();
      ASSERT_EQ(Difference(*device, *host), "");
    }
  }
}

TEST_P(KernelsTest, EveryScheduleGivesTheSameBits) {
  const PushInput input = PushInput::Of(Input::kMixed, 4096 + 77, 5);
  PushLaunch launch = NextLaunch();
  const auto host = PushOnHost(launch, input);
  ASSERT_TRUE(host.ok()) << host.status();
  for (launch.seed = 100; launch.seed < 100 + kSchedules; ++launch.seed) {
    for (const uint32_t threads : {64, 256}) {
      launch.threads = threads;
      const auto device = PushOnDevice(launch, input);
      ASSERT_TRUE(device.ok()) << device.status();
      ASSERT_EQ(Difference(*device, *host), "");
    }
  }
}

TEST_P(KernelsTest, ValuesThatAreNotFiniteAreFoundAsByErrorFeedback) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    for (const uint64_t at : {0, 300, 4100, 4999}) {
      const PushLaunch launch = NextLaunch();
      if (launch.seed % kOneIn != 0) continue;
      PushInput input = PushInput::Of(Input::kRandom, 5000, 9);
      input.local[at] = bad;
      input.base[4999] = bad;
      const auto host = PushOnHost(launch, input);
      const auto device = PushOnDevice(launch, input);
      ASSERT_FALSE(host.ok());
      ASSERT_EQ(device.status().message(), "element " + std::to_string(at)) << host.status();
      EXPECT_NE(host.status().message().find("element " + std::to_string(at) + " "), std::string::npos)
          << host.status();
    }
  }
}

TEST_P(KernelsTest, ASumThatOverflowsIsFound) {
  PushInput input = PushInput::Of(Input::kRandom, 600, 9);
  input.base[599] = std::numeric_limits<float>::max();
  input.local[599] = -std::numeric_limits<float>::max();
  const auto device = PushOnDevice(NextLaunch(), input);
  EXPECT_EQ(device.status().message(), "element 599");
}

TEST_P(KernelsTest, ADeltaIsAddedAsByTheCodec) {
  for (const Input kind : kInputs) {
    for (const uint64_t elements : kSizes) {
      const PushLaunch launch = NextLaunch();
      SCOPED_TRACE(testing::Message() << "input " << static_cast<int>(kind) << ", " << elements
                                      << " values, seed " << launch.seed);
      const PushInput input = PushInput::Of(kind, elements, elements + 1);
      const Codec& codec = CodecFor(GetParam());
      std::vector<std::byte> payload(codec.EncodedSize(elements));
      codec.Encode(input.residual, payload);
      std::vector<float> host = input.base;
      host[0] = -0.0f;
      std::vector<float> device = host;
      ApplyDelta(codec, payload, host);
      ASSERT_TRUE(AddOnDevice(launch, payload, device).ok());
      for (uint64_t i = 0; i < elements; ++i) {
        ASSERT_EQ(std::bit_cast<uint32_t>(device[i]), std::bit_cast<uint32_t>(host[i])) << "value " << i;
      }
    }
  }
}

// One pass: each of the vectors is moved once. topk writes the residual of what it sends again, and reads it
// for the moving average.
TEST_P(KernelsTest, APushMovesEveryVectorOnce) {
  constexpr uint64_t kElements = uint64_t{3} * 4096;
  PushLaunch launch = NextLaunch();
  launch.form = ErrorFeedbackForm::kMovingAverage;
  const auto device = PushOnDevice(launch, PushInput::Of(Input::kRandom, kElements, 3));
  ASSERT_TRUE(device.ok()) << device.status();
  const uint64_t again = CodecFor(GetParam()).sparse() == nullptr ? 0 : kElements / 32;
  for (const HostExecutor::Traffic& moved : device->traffic) {
    SCOPED_TRACE(moved.name);
    if (moved.name == "base" || moved.name == "local") {
      EXPECT_EQ(moved.read, 4 * kElements);
    }
    if (moved.name == "residual") {
      EXPECT_LE(moved.read, 4 * (kElements + again));
    }
    if (moved.name == "next") {
      EXPECT_LE(moved.written, 4 * (kElements + again));
      EXPECT_EQ(moved.read, 0);
    }
    if (moved.name == "payload") {
      EXPECT_EQ(moved.written, device->payload.size());
      EXPECT_EQ(moved.read, 0);
    }
    if (moved.name == "squares") {
      EXPECT_EQ(moved.written, kElements / 4096 * 8);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, KernelsTest, testing::ValuesIn(kDeviceCodecs),
                         [](const auto& param) { return std::string(CodecName(param.param)); });

}  // namespace
}  // namespace atl::device

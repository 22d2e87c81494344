#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "client/sync/pseudo_gradient_encoder.h"
#include "client/sync/secret_noise.h"
#include "client/sync/worker_status.h"
#include "common/secret_stream.h"
#include "core/codec.h"
#include "core/fragment_plan.h"
#include "core/payload_gaps.h"
#include "core/payload_stats.h"
#include "gtest/gtest.h"
#include "tests/client/sync/fake_replica.h"

namespace atl {
namespace {

TEST(SecretStream, IsAnotherOneEveryTime) {
  std::vector<std::byte> a(4096), b(4096);
  SecretStream first, second;
  first.Fill(a);
  second.Fill(b);
  EXPECT_NE(a, b);
  std::vector<std::byte> next(4096);
  first.Fill(next);
  EXPECT_NE(a, next);
  std::vector<size_t> counts(256);
  std::vector<std::byte> many(3 << 20);
  first.Fill(many);
  for (const std::byte value : many) ++counts[static_cast<size_t>(value)];
  for (const size_t count : counts) EXPECT_NEAR(static_cast<double>(count), 12288, 8 * std::sqrt(12288));
}

TEST(SecretNoise, IsGaussianAndAddsToWhatIsThere) {
  constexpr size_t kValues = 1000001;  // odd, and no multiple of a batch
  std::vector<float> values(kValues, 5.0F);
  SecretNoise().AddTo(values, 2.0);
  double mean = 0, square = 0, fourth = 0, neighbours = 0;
  std::vector<double> z;
  for (const float value : values) z.push_back((double{value} - 5) / 2);
  for (size_t i = 0; i < z.size(); ++i) {
    mean += z[i];
    square += z[i] * z[i];
    fourth += z[i] * z[i] * z[i] * z[i];
    if (i + 1 < z.size()) neighbours += z[i] * z[i + 1];
  }
  const double n = kValues;
  // Five standard errors each.
  EXPECT_NEAR(mean / n, 0, 5e-3);
  EXPECT_NEAR(square / n, 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(fourth / n, 3, 5 * std::sqrt(96 / n));
  EXPECT_NEAR(neighbours / n, 0, 5e-3);
  // Kolmogorov and Smirnov's distance from the normal distribution.
  std::ranges::sort(z);
  double furthest = 0;
  for (size_t i = 0; i < z.size(); ++i) {
    const double expected = 0.5 * std::erfc(-z[i] / std::sqrt(2.0));
    furthest = std::max(furthest, std::abs(expected - (static_cast<double>(i) + 0.5) / n));
  }
  EXPECT_LT(furthest, 2.5e-3);
}

struct Counting final : GaussianSource {
  void AddTo(std::span<float> values, double deviation) override {
    ++calls;
    last_deviation = deviation;
    noisy_norm_before = VectorNorm(values);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] += static_cast<float>(deviation * std::sin(double(i)));
    sent.assign(values.begin(), values.end());
  }
  int calls = 0;
  double last_deviation = 0;
  double noisy_norm_before = 0;
  std::vector<float> sent;
};

constexpr uint64_t kElements = 8192;

RunOptions PrivateRun(CodecKind codec) {
  RunOptions run;
  run.push_codec = codec;
  run.privacy = {.clip_norm = 2, .noise_multiplier = 0.5, .delta = 1e-5};
  return run;
}

PushHeader Claims(uint64_t base) {
  return {.key = {.fragment = FragmentId(0), .base = Version(base), .sequence = 0},
          .tokens = 10,
          .steps = 1,
          .samples_consumed = 0,
          .mean_loss = 3.25};
}

TEST(PrivateEncoder, ClipsThenAddsNoiseAndTellsNoLoss) {
  auto noise = std::make_shared<Counting>();
  PseudoGradientEncoder encoder(PrivateRun(CodecKind::kFp32), kElements, noise);
  std::vector<float> delta(kElements, 1.0F);  // of norm 90
  ASSERT_TRUE(encoder.Encode(Claims(0), delta).ok());
  EXPECT_EQ(noise->calls, 1);
  EXPECT_DOUBLE_EQ(noise->last_deviation, 1.0);
  EXPECT_NEAR(noise->noisy_norm_before, 2, 1e-5);
  std::vector<float> decoded(kElements);
  CodecFor(CodecKind::kFp32).DecodeRange(encoder.payload(), kElements, 0, decoded);
  EXPECT_EQ(decoded, noise->sent);
  EXPECT_EQ(encoder.header().mean_loss, 0);
}

TEST(PrivateEncoder, GapsBetweenTensorsGetNoNoise) {
  FakeReplica replica(5.0F);
  FragmentBase base{
      .layout = PlanFragments(replica.manifest(), 1)->front(), .version = Version(0), .values = {}};
  // As the noise of workers of 0.1.0 left it.
  base.values.assign(base.layout.elements, 1.5F);
  auto noise = std::make_shared<Counting>();
  PseudoGradientEncoder encoder(PrivateRun(CodecKind::kFp32), base.layout.elements, noise);
  std::vector<float> room(base.layout.elements);
  ASSERT_TRUE(encoder.Measure(base, replica, room).ok());
  ASSERT_TRUE(encoder.Encode(Claims(0), room).ok());
  const absl::Status gaps = CheckGaps(CodecFor(CodecKind::kFp32), encoder.payload(), base.layout);
  EXPECT_TRUE(gaps.ok()) << gaps;
  std::vector<float> sent(base.layout.elements);
  CodecFor(CodecKind::kFp32).DecodeRange(encoder.payload(), base.layout.elements, 0, sent);
  ClearGaps(base.layout, noise->sent);
  EXPECT_EQ(sent, noise->sent) << "the tensors have theirs";
}

TEST(PrivateEncoder, ResidualAndPayloadAreMadeOfNoisyValuesOnly) {
  // Two workers whose data differ, but whose noisy values are the same, send the same for ever: whatever the
  // encoding loses and error feedback carries was noisy already.
  struct Replacing final : GaussianSource {
    void AddTo(std::span<float> values, double) override {
      ++round;
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(std::sin(static_cast<double>(i * static_cast<size_t>(round))));
      }
    }
    int round = 0;
  };
  PseudoGradientEncoder one(PrivateRun(CodecKind::kInt4), kElements, std::make_shared<Replacing>());
  PseudoGradientEncoder other(PrivateRun(CodecKind::kInt4), kElements, std::make_shared<Replacing>());
  for (uint64_t base = 0; base < 4; ++base) {
    std::vector<float> mine(kElements, 0.001F), yours(kElements, -7.0F);
    ASSERT_TRUE(one.Encode(Claims(base), mine).ok());
    ASSERT_TRUE(other.Encode(Claims(base), yours).ok());
    EXPECT_TRUE(std::ranges::equal(one.payload(), other.payload()));
    EXPECT_TRUE(std::ranges::equal(one.residual(), other.residual()));
    one.Settle(base == 2 ? Verdict::kLost : Verdict::kCounted);
    other.Settle(base == 2 ? Verdict::kLost : Verdict::kCounted);
  }
  EXPECT_GT(VectorNorm(one.residual()), 0) << "int4 loses something";
}

TEST(PrivateEncoder, DefaultNoiseIsNeverTheSame) {
  std::vector<std::vector<std::byte>> payloads;
  for (int life = 0; life < 2; ++life) {
    PseudoGradientEncoder encoder(PrivateRun(CodecKind::kFp32), kElements);
    std::vector<float> delta(kElements, 0.001F);
    ASSERT_TRUE(encoder.Encode(Claims(0), delta).ok());
    payloads.emplace_back(encoder.payload().begin(), encoder.payload().end());
  }
  EXPECT_NE(payloads[0], payloads[1]);
}

TEST(PrivateEncoder, WithoutPrivacyNothingChanges) {
  RunOptions run;
  auto noise = std::make_shared<Counting>();
  PseudoGradientEncoder encoder(run, kElements, noise);
  std::vector<float> delta(kElements, 1.0F);
  ASSERT_TRUE(encoder.Encode(Claims(0), delta).ok());
  EXPECT_EQ(noise->calls, 0);
  EXPECT_EQ(encoder.header().mean_loss, 3.25);
  EXPECT_EQ(delta, std::vector<float>(kElements, 1.0F));
}

TEST(PrivateStatus, TellsNoLossWithHeartbeats) {
  WorkerStatus worker_status;
  worker_status.Update([](ProgressReport& progress) {
    progress.loss = 2;
    progress.gradient_norm = 3;
    progress.step = 4;
  });
  EXPECT_EQ(worker_status.Report().progress.loss, 2);
  worker_status.HideLosses(true);
  EXPECT_EQ(worker_status.Report().progress.loss, 0);
  EXPECT_EQ(worker_status.Report().progress.gradient_norm, 0);
  EXPECT_EQ(worker_status.Report().progress.step, 4u);
}

}  // namespace
}  // namespace atl

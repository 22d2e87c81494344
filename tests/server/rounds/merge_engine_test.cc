#include "server/rounds/merge_engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "common/content_hash.h"
#include "common/crc32c.h"
#include "core/payload_stats.h"

namespace atl {
namespace {

// More than two blocks of 1 MiB, and not a whole number of them.
constexpr uint64_t kElements = (size_t{1} << 19) + 4096 + 256;

FragmentState MakeState() {
  FragmentState state;
  state.epoch = Epoch(5);
  state.layout = {.id = FragmentId(0),
                  .slots = {{.tensor = 0, .offset = 0, .elements = kElements}},
                  .elements = kElements};
  state.version = Version(3);
  auto theta = std::make_shared<TensorBuffer>(kElements);
  for (size_t i = 0; i < kElements; ++i) theta->values()[i] = std::sin(static_cast<float>(i));
  state.theta = std::move(theta);
  state.state.push_back(TensorBuffer::Zeros(kElements));
  return state;
}

struct Payloads {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<MergeInput> inputs;
  Payloads() {
    const Codec& codec = CodecFor(CodecKind::kInt8);
    for (int worker = 0; worker < 3; ++worker) {
      std::vector<float> delta(kElements);
      for (size_t i = 0; i < kElements; ++i)
        delta[i] = 0.01F * std::cos(static_cast<float>(i) * (1.0F + worker));
      bytes.emplace_back(codec.EncodedSize(kElements));
      codec.Encode(delta, bytes.back());
    }
    for (const auto& payload : bytes) {
      inputs.push_back({.codec = &codec, .payload = payload, .weight = 1.0F / 3});
      inputs.back().norm = *PayloadNorm(codec, payload, kElements);
    }
  }
};

Hash128 HashOf(std::span<const std::byte> bytes) { return HashBytes(bytes); }

TEST(MergeEngine, GivesTheSameBitsOnAnyNumberOfThreads) {
  const Payloads payloads;
  for (const MergeMethod method : {MergeMethod::kMean, MergeMethod::kRda, MergeMethod::kCenteredClip}) {
    std::optional<VersionHashes> first;
    for (const uint32_t threads : {1U, 2U, 5U}) {
      MergeEngine engine(threads, CodecKind::kFp32);
      FragmentState state = MakeState();
      const auto computed = engine.Step(payloads.inputs, {.method = method}, OuterOptions{}, state);
      ASSERT_TRUE(computed.ok()) << computed.status();
      if (!first) first = computed->hashes;
      EXPECT_EQ(computed->hashes, *first) << threads;
    }
  }
}

TEST(MergeEngine, HashesWhatItMade) {
  const Payloads payloads;
  MergeEngine engine(2, CodecKind::kFp32);
  FragmentState state = MakeState();
  const auto computed = engine.Step(payloads.inputs, MergeOptions{}, OuterOptions{}, state);
  ASSERT_TRUE(computed.ok());
  EXPECT_EQ(computed->hashes.parameters.low, HashOf(computed->theta->bytes()).low);
  EXPECT_EQ(computed->hashes.state.high, HashOf(std::as_const(state.state[0]).bytes()).high);
  EXPECT_EQ(computed->hashes.published, computed->hashes.parameters);
  const Snapshot& snapshot = *computed->snapshot;
  EXPECT_EQ(snapshot.version, Version(4));
  EXPECT_EQ(snapshot.epoch, Epoch(5));
  EXPECT_EQ(snapshot.payload.data(), computed->theta->bytes().data())
      << "theta itself is published, not a copy";
  ASSERT_EQ(snapshot.chunk_crc32c.size(), 3);
  EXPECT_EQ(snapshot.chunk_crc32c[2], Crc32c(snapshot.payload.subspan(2 * kWireChunkBytes)));
}

TEST(MergeEngine, PublishesBf16WhenAsked) {
  MergeEngine engine(2, CodecKind::kBf16);
  const FragmentState state = MakeState();
  const ComputedVersion published = engine.Publish(state);
  EXPECT_EQ(published.snapshot->payload.size(), kElements * 2);
  EXPECT_EQ(published.hashes.published.low, HashOf(published.snapshot->payload).low);
  EXPECT_EQ(published.hashes.parameters.low, HashOf(state.theta->bytes()).low);
  std::vector<float> decoded(kElements);
  CodecFor(CodecKind::kBf16).DecodeRange(published.snapshot->payload, kElements, 0, decoded);
  for (size_t i = 0; i < kElements; i += 997)
    EXPECT_NEAR(decoded[i], std::as_const(*state.theta).values()[i], 4e-3);
}

TEST(MergeEngine, UsesTheMemoryOfAVersionThatIsGone) {
  const Payloads payloads;
  MergeEngine engine(2, CodecKind::kFp32);
  FragmentState state = MakeState();
  auto first = engine.Step(payloads.inputs, MergeOptions{}, OuterOptions{}, state);
  const std::byte* memory = first->theta->bytes().data();
  state.theta = first->theta;
  auto second = engine.Step(payloads.inputs, MergeOptions{}, OuterOptions{}, state);
  EXPECT_NE(second->theta->bytes().data(), memory) << "still read from";
  state.theta = second->theta;
  first = absl::CancelledError("gone");
  EXPECT_EQ(engine.Step(payloads.inputs, MergeOptions{}, OuterOptions{}, state)->theta->bytes().data(),
            memory);
}

TEST(MergeEngine, RejectsAResultThatIsNotFinite) {
  const Codec& codec = CodecFor(CodecKind::kFp32);
  std::vector<float> delta(kElements, 0.0F);
  delta[kElements - 5] = std::numeric_limits<float>::max();
  std::vector<std::byte> payload(codec.EncodedSize(kElements));
  codec.Encode(delta, payload);
  const MergeInput input{.codec = &codec, .payload = payload, .weight = 1};
  MergeEngine engine(2, CodecKind::kFp32);
  FragmentState state = MakeState();
  OuterOptions outer;
  outer.learning_rate = 10;
  const auto computed = engine.Step(std::span(&input, 1), MergeOptions{}, outer, state);
  EXPECT_TRUE(absl::IsFailedPrecondition(computed.status())) << computed.status();
}

}  // namespace
}  // namespace atl

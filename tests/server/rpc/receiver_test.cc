#include "server/rpc/receiver.h"

#include <array>
#include <string>

#include "common/crc32c.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/rejection.h"
#include "tests/fakes/fake_coordinator.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

/// A chunk that arrived in two pieces; `data` outlives it.
struct TestChunk : WireChunk {
  TestChunk(uint64_t at, const std::string& text)
      : pieces{std::as_bytes(std::span(text)).first(text.size() / 2),
               std::as_bytes(std::span(text)).subspan(text.size() / 2)} {
    offset = at;
    data = pieces;
    bytes = text.size();
    crc32c = Crc32c(text);
  }
  TestChunk(const TestChunk&) = delete;
  TestChunk& operator=(const TestChunk&) = delete;
  std::array<std::span<const std::byte>, 2> pieces;
};

/// The same, packed.
struct PackedChunk : TestChunk {
  PackedChunk(uint64_t at, const std::string& text, const std::string& packed) : TestChunk(at, packed) {
    bytes = text.size();
    crc32c = Crc32c(text);
    packing = ChunkPacking::kZstd;
  }
};

std::string Packed(const std::string& text) {
  std::string out(text.size(), '\0');
  out.resize(
      BlockCompressor().Compress(std::as_bytes(std::span(text)), std::as_writable_bytes(std::span(out))));
  return out;
}

PushHeader HeaderOf(uint64_t payload_bytes) {
  PushHeader header;
  header.payload_bytes = payload_bytes;
  return header;
}

TEST(CheckChunkTest, RejectsWhatItsChecksumDoesNotCover) {
  const std::string data = "hello";
  TestChunk chunk(42, data);
  EXPECT_TRUE(CheckChunk(chunk).ok());
  chunk.crc32c ^= 1;
  const absl::Status status = CheckChunk(chunk);
  EXPECT_EQ(ReasonOf(status), RejectionReason::kBadChunk);
  EXPECT_THAT(std::string(status.message()), HasSubstr("byte 42"));
}

TEST(CheckChunkTest, RejectsEmptyAndOversizedChunks) {
  EXPECT_TRUE(absl::IsInvalidArgument(CheckChunk(TestChunk(0, ""))));
  EXPECT_TRUE(CheckChunk(TestChunk(0, std::string(kWireChunkBytes, 'x'))).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckChunk(TestChunk(0, std::string(kWireChunkBytes + 1, 'x')))));
}

TEST(PushReceiverTest, HandsOnChunksInOrderAndFinishes) {
  FakeCoordinator coordinator;
  PushReceiver receiver(&coordinator);
  ASSERT_TRUE(receiver.Begin(MemberRef(), HeaderOf(6)).ok());
  ASSERT_TRUE(receiver.Chunk(TestChunk(0, "abc")).ok());
  ASSERT_TRUE(receiver.Chunk(TestChunk(3, "def")).ok());
  const auto result = receiver.End();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->head, Version(7));
  EXPECT_EQ(coordinator.pushed(), "abcdef");
}

TEST(PushReceiverTest, GoesOnWhereABrokenUploadStopped) {
  FakeCoordinator coordinator;
  coordinator.push_resumes_at = 4;
  PushReceiver receiver(&coordinator);
  ASSERT_TRUE(receiver.Begin(MemberRef(), HeaderOf(6)).ok());
  EXPECT_EQ(ReasonOf(receiver.Chunk(TestChunk(0, "abcd"))), RejectionReason::kBadChunk);
  ASSERT_TRUE(receiver.Chunk(TestChunk(4, "ef")).ok());
  EXPECT_TRUE(receiver.End().ok());
}

TEST(PushReceiverTest, RejectsGapsRepetitionsAndExcess) {
  FakeCoordinator coordinator;
  PushReceiver receiver(&coordinator);
  ASSERT_TRUE(receiver.Begin(MemberRef(), HeaderOf(6)).ok());
  ASSERT_TRUE(receiver.Chunk(TestChunk(0, "abc")).ok());
  EXPECT_EQ(ReasonOf(receiver.Chunk(TestChunk(4, "ef"))), RejectionReason::kBadChunk);
  EXPECT_EQ(ReasonOf(receiver.Chunk(TestChunk(0, "abc"))), RejectionReason::kBadChunk);
  EXPECT_EQ(ReasonOf(receiver.Chunk(TestChunk(3, "defg"))), RejectionReason::kWrongSize);
  EXPECT_EQ(coordinator.pushed(), "abc");
}

TEST(PushReceiverTest, AShortStreamIsToBeResumed) {
  FakeCoordinator coordinator;
  PushReceiver receiver(&coordinator);
  ASSERT_TRUE(receiver.Begin(MemberRef(), HeaderOf(6)).ok());
  ASSERT_TRUE(receiver.Chunk(TestChunk(0, "abc")).ok());
  const absl::Status status = receiver.End().status();
  EXPECT_EQ(ReasonOf(status), RejectionReason::kBadChunk);
  EXPECT_THAT(std::string(status.message()), HasSubstr("byte 3 of 6"));
}

TEST(PushReceiverTest, AnAcceptedContributionNeedsNoBytes) {
  FakeCoordinator coordinator;
  coordinator.push_already_accepted = true;
  PushReceiver receiver(&coordinator);
  ASSERT_TRUE(receiver.Begin(MemberRef(), HeaderOf(6)).ok());
  EXPECT_TRUE(receiver.complete());
  const auto result = receiver.End();
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->duplicate);
}

TEST(PushReceiverTest, UnpacksWhatWasPackedAndChecksItsContents) {
  const std::string first(kWireChunkBytes, 'a');
  const std::string second = "plain, between two that are packed";
  const std::string third(5000, 'b');
  FakeCoordinator coordinator;
  PushReceiver receiver(&coordinator);
  ASSERT_TRUE(receiver.Begin(MemberRef(), HeaderOf(first.size() + second.size() + third.size())).ok());
  const std::string packed = Packed(first);
  ASSERT_LT(packed.size(), 1000u);
  ASSERT_TRUE(receiver.Chunk(PackedChunk(0, first, packed)).ok());
  ASSERT_TRUE(receiver.Chunk(TestChunk(first.size(), second)).ok());
  const std::string packed_third = Packed(third);
  PackedChunk damaged(first.size() + second.size(), third, packed_third);
  damaged.crc32c ^= 1;
  EXPECT_EQ(ReasonOf(receiver.Chunk(damaged)), RejectionReason::kBadChunk);
  ASSERT_TRUE(receiver.Chunk(PackedChunk(first.size() + second.size(), third, packed_third)).ok());
  ASSERT_TRUE(receiver.End().ok());
  EXPECT_TRUE(coordinator.pushed() == first + second + third);  // not printed: a megabyte
}

TEST(PushReceiverTest, APackedChunkThatHoldsSomethingElseThanItSaysIsRejected) {
  FakeCoordinator coordinator;
  PushReceiver receiver(&coordinator);
  ASSERT_TRUE(receiver.Begin(MemberRef(), HeaderOf(uint64_t{4} << 30)).ok());
  // A megabyte of zeros takes some fifty bytes: frames that unfold to far more than they announce.
  const std::string bomb = Packed(std::string(64 << 20, '\0'));
  const std::string text(1000, 'x');
  const std::string packed = Packed(text);
  for (const uint64_t announced : {uint64_t{1}, uint64_t{1000}, uint64_t{kWireChunkBytes}}) {
    PackedChunk chunk(0, text, bomb);
    chunk.bytes = announced;
    EXPECT_TRUE(absl::IsInvalidArgument(receiver.Chunk(chunk))) << announced;
  }
  for (const uint64_t announced : {uint64_t{0}, uint64_t{999}, uint64_t{1001}, uint64_t{kWireChunkBytes + 1},
                                   uint64_t{1} << 32, ~uint64_t{0}}) {
    PackedChunk chunk(0, text, packed);
    chunk.bytes = announced;
    EXPECT_TRUE(absl::IsInvalidArgument(receiver.Chunk(chunk))) << announced;
  }
  const std::string cut = packed.substr(0, packed.size() - 1);
  EXPECT_TRUE(absl::IsInvalidArgument(receiver.Chunk(PackedChunk(0, text, cut))));
  EXPECT_TRUE(absl::IsInvalidArgument(receiver.Chunk(PackedChunk(0, text, text))));
  const std::string nothing;
  EXPECT_TRUE(absl::IsInvalidArgument(receiver.Chunk(PackedChunk(0, text, nothing))));
  EXPECT_EQ(coordinator.pushed(), "");
  EXPECT_TRUE(receiver.Chunk(PackedChunk(0, text, packed)).ok());
}

TEST(SeedReceiverTest, HandsOnCheckedChunks) {
  FakeCoordinator coordinator;
  SeedReceiver receiver(&coordinator);
  ASSERT_TRUE(receiver.Begin(MemberRef(), Manifest()).ok());
  ASSERT_TRUE(receiver.Chunk(FragmentId(0), TestChunk(0, "abc")).ok());
  const std::string def = "def";
  TestChunk damaged(3, def);
  damaged.crc32c = 0;
  EXPECT_EQ(ReasonOf(receiver.Chunk(FragmentId(0), damaged)), RejectionReason::kBadChunk);
  EXPECT_EQ(coordinator.seeded(), "abc");
  EXPECT_TRUE(receiver.End().ok());
}

}  // namespace
}  // namespace atl

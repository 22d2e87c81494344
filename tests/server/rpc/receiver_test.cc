#include "server/rpc/receiver.h"

#include <string>

#include "common/crc32c.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/refusal.h"
#include "tests/fakes/fake_coordinator.h"

namespace atoll {
namespace {

using ::testing::HasSubstr;

WireChunk ChunkOf(uint64_t offset, const std::string& data) {
  return {.offset = offset, .data = std::as_bytes(std::span(data)), .crc32c = Crc32c(data)};
}

PushCall CallOf(uint64_t payload_bytes) {
  PushCall call;
  call.payload_bytes = payload_bytes;
  return call;
}

TEST(CheckChunkTest, RefusesWhatItsChecksumDoesNotCover) {
  const std::string data = "hello";
  WireChunk chunk = ChunkOf(42, data);
  EXPECT_TRUE(CheckChunk(chunk).ok());
  chunk.crc32c ^= 1;
  const absl::Status status = CheckChunk(chunk);
  EXPECT_EQ(ReasonOf(status), RefusalReason::kBadChunk);
  EXPECT_THAT(std::string(status.message()), HasSubstr("byte 42"));
}

TEST(CheckChunkTest, RefusesEmptyAndOversizedChunks) {
  EXPECT_TRUE(absl::IsInvalidArgument(CheckChunk(ChunkOf(0, ""))));
  EXPECT_TRUE(CheckChunk(ChunkOf(0, std::string(kWireChunkBytes, 'x'))).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckChunk(ChunkOf(0, std::string(kWireChunkBytes + 1, 'x')))));
}

TEST(PushReceiverTest, HandsOnChunksInOrderAndFinishes) {
  FakeCoordinator coordinator;
  PushReceiver receiver(&coordinator);
  ASSERT_TRUE(receiver.Begin(CallOf(6)).ok());
  ASSERT_TRUE(receiver.Chunk(ChunkOf(0, "abc")).ok());
  ASSERT_TRUE(receiver.Chunk(ChunkOf(3, "def")).ok());
  const auto result = receiver.End();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->head, Version(7));
  EXPECT_EQ(coordinator.pushed(), "abcdef");
}

TEST(PushReceiverTest, GoesOnWhereABrokenUploadStopped) {
  FakeCoordinator coordinator;
  coordinator.push_resumes_at = 4;
  PushReceiver receiver(&coordinator);
  ASSERT_TRUE(receiver.Begin(CallOf(6)).ok());
  EXPECT_EQ(ReasonOf(receiver.Chunk(ChunkOf(0, "abcd"))), RefusalReason::kBadChunk);
  ASSERT_TRUE(receiver.Chunk(ChunkOf(4, "ef")).ok());
  EXPECT_TRUE(receiver.End().ok());
}

TEST(PushReceiverTest, RefusesGapsRepetitionsAndExcess) {
  FakeCoordinator coordinator;
  PushReceiver receiver(&coordinator);
  ASSERT_TRUE(receiver.Begin(CallOf(6)).ok());
  ASSERT_TRUE(receiver.Chunk(ChunkOf(0, "abc")).ok());
  EXPECT_EQ(ReasonOf(receiver.Chunk(ChunkOf(4, "ef"))), RefusalReason::kBadChunk);
  EXPECT_EQ(ReasonOf(receiver.Chunk(ChunkOf(0, "abc"))), RefusalReason::kBadChunk);
  EXPECT_EQ(ReasonOf(receiver.Chunk(ChunkOf(3, "defg"))), RefusalReason::kWrongSize);
  EXPECT_EQ(coordinator.pushed(), "abc");
}

TEST(PushReceiverTest, AShortStreamIsToBeResumed) {
  FakeCoordinator coordinator;
  PushReceiver receiver(&coordinator);
  ASSERT_TRUE(receiver.Begin(CallOf(6)).ok());
  ASSERT_TRUE(receiver.Chunk(ChunkOf(0, "abc")).ok());
  const absl::Status status = receiver.End().status();
  EXPECT_EQ(ReasonOf(status), RefusalReason::kBadChunk);
  EXPECT_THAT(std::string(status.message()), HasSubstr("byte 3 of 6"));
}

TEST(PushReceiverTest, AnAcceptedContributionNeedsNoBytes) {
  FakeCoordinator coordinator;
  coordinator.push_already_accepted = true;
  PushReceiver receiver(&coordinator);
  ASSERT_TRUE(receiver.Begin(CallOf(6)).ok());
  EXPECT_TRUE(receiver.complete());
  const auto result = receiver.End();
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->duplicate);
}

TEST(SeedReceiverTest, HandsOnCheckedChunks) {
  FakeCoordinator coordinator;
  SeedReceiver receiver(&coordinator);
  ASSERT_TRUE(receiver.Begin(Caller(), Manifest()).ok());
  ASSERT_TRUE(receiver.Chunk(FragmentId(0), ChunkOf(0, "abc")).ok());
  WireChunk damaged = ChunkOf(3, "def");
  damaged.crc32c = 0;
  EXPECT_EQ(ReasonOf(receiver.Chunk(FragmentId(0), damaged)), RefusalReason::kBadChunk);
  EXPECT_EQ(coordinator.seeded(), "abc");
  EXPECT_TRUE(receiver.End().ok());
}

}  // namespace
}  // namespace atoll

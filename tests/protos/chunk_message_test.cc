#include "protos/wire/chunk_message.h"

#include <string>

#include "atoll/v1/coordinator.pb.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

std::string Flat(const grpc::ByteBuffer& message) {
  const MessagePieces arrived(message);
  std::string bytes;
  for (const ByteSpan piece : arrived.pieces()) {
    bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  return bytes;
}

TEST(ChunkMessageTest, RefersToTheDataAndGivesItsOwnerBack) {
  const auto owner = std::make_shared<const std::string>(100'000, 'x');
  grpc::ByteBuffer message =
      ChunkMessage({.offset = 7, .crc32c = 8}, std::as_bytes(std::span(*owner)), owner);
  EXPECT_EQ(owner.use_count(), 2);
  {
    const MessagePieces arrived(message);
    ASSERT_EQ(arrived.pieces().size(), 2u);
    EXPECT_EQ(reinterpret_cast<const char*>(arrived.pieces()[1].data()), owner->data());
  }
  v1::PushChunk chunk;
  ASSERT_TRUE(chunk.ParseFromString(Flat(message)));
  EXPECT_EQ(chunk.offset(), 7u);
  EXPECT_EQ(chunk.crc32c(), 8u);
  EXPECT_TRUE(chunk.data() == *owner);
  grpc::ByteBuffer copy = message;
  message.Clear();
  EXPECT_EQ(owner.use_count(), 2);
  copy.Clear();
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(ChunkMessageTest, MessagesThereAndBack) {
  v1::PushReply reply;
  reply.set_head_version(12);
  v1::PushReply back;
  ASSERT_TRUE(MessageFromBytes(MessageToBytes(reply), &back).ok());
  EXPECT_EQ(back.head_version(), 12u);
  ASSERT_TRUE(MessageFromBytes(grpc::ByteBuffer(), &back).ok());
  EXPECT_EQ(back.head_version(), 0u);
  ASSERT_TRUE(MessageFromBytes(MessageToBytes(v1::PushReply()), &back).ok());
  const grpc::Slice rubbish("\xff\xff");
  EXPECT_FALSE(MessageFromBytes(grpc::ByteBuffer(&rubbish, 1), &back).ok());
}

}  // namespace
}  // namespace atl

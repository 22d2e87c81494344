// The hand-written reader and writer of chunks, with protobuf's own as the oracle.
#include "protos/wire/chunk_frame.h"

#include <string>
#include <vector>

#include "atoll/v1/coordinator.pb.h"
#include "common/digest.h"
#include "common/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<ChunkFrame> ParseWhole(const std::string& bytes) {
  const ByteSpan whole = std::as_bytes(std::span(bytes));
  return ParseChunkFrame(std::span(&whole, 1));
}

std::string DataOf(const ChunkFrame& frame) {
  std::string data;
  for (const ByteSpan piece : frame.data)
    data.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  EXPECT_EQ(data.size(), frame.data_bytes);
  return data;
}

v1::PushChunk SomeChunk() {
  v1::PushChunk chunk;
  chunk.set_offset(uint64_t{3} << 20);
  chunk.set_data("some bytes of a pseudo-gradient, and a few more of them");
  chunk.set_crc32c(0xE3069283);
  chunk.set_compression(v1::COMPRESSION_ZSTD);
  chunk.set_uncompressed_bytes(1 << 20);
  return chunk;
}

v1::PushChunk SomeHeader() {
  v1::PushChunk chunk;
  chunk.mutable_header()->mutable_worker()->set_worker("w1");
  chunk.mutable_header()->set_payload_bytes(12345);
  return chunk;
}

/// Both readers on the same bytes: what ours takes protobuf takes too, with the same meaning; what only ours
/// refuses is one of the three things that it is meant to. Returns whether ours took it.
bool Compare(const std::string& bytes, const absl::StatusOr<ChunkFrame>& frame) {
  v1::PushChunk oracle;
  bool taken = oracle.ParseFromString(bytes);
  if (!frame.ok()) {
    const std::string why(frame.status().message());
    const bool stricter = why.find("group") != std::string::npos || why.find("header:") != std::string::npos;
    EXPECT_TRUE(!taken || stricter) << why;
    return false;
  }
  v1::PushHeader header;
  const bool header_taken = header.ParseFromString(frame->header);
  EXPECT_EQ(taken, header_taken);
  if (!taken) return true;
  EXPECT_EQ(frame->has_header, oracle.has_header());
  EXPECT_EQ(header.SerializeAsString(), oracle.header().SerializeAsString());
  EXPECT_EQ(frame->fields.offset, oracle.offset());
  EXPECT_EQ(frame->fields.crc32c, oracle.crc32c());
  EXPECT_EQ(frame->fields.compression, static_cast<int32_t>(oracle.compression()));
  EXPECT_EQ(frame->fields.uncompressed_bytes, oracle.uncompressed_bytes());
  EXPECT_EQ(DataOf(*frame), oracle.data());
  return true;
}

TEST(ChunkFrameTest, ReadsWhatProtobufWrites) {
  for (const v1::PushChunk& chunk : {SomeChunk(), SomeHeader(), v1::PushChunk()}) {
    const std::string bytes = chunk.SerializeAsString();
    EXPECT_TRUE(Compare(bytes, ParseWhole(bytes)));
  }
}

TEST(ChunkFrameTest, ProtobufReadsWhatIsWrittenHere) {
  for (const uint64_t offset : {uint64_t{0}, uint64_t{127}, uint64_t{1} << 20, ~uint64_t{0}}) {
    for (const uint32_t crc32c : {0u, 1u, 0xE3069283u}) {
      const std::string data(300, 'd');
      ChunkFields fields{.offset = offset, .crc32c = crc32c};
      v1::PullChunk chunk;
      ASSERT_TRUE(chunk.ParseFromString(ChunkPrefix(fields, data.size()) + data));
      EXPECT_EQ(chunk.offset(), offset);
      EXPECT_EQ(chunk.crc32c(), crc32c);
      EXPECT_EQ(chunk.data(), data);
      EXPECT_EQ(chunk.compression(), v1::COMPRESSION_NONE);
      fields.compression = v1::COMPRESSION_ZSTD;
      fields.uncompressed_bytes = 77;
      ASSERT_TRUE(chunk.ParseFromString(ChunkPrefix(fields, data.size()) + data));
      EXPECT_EQ(chunk.compression(), v1::COMPRESSION_ZSTD);
      EXPECT_EQ(chunk.uncompressed_bytes(), 77u);
    }
  }
  EXPECT_EQ(ChunkPrefix({}, 0), "");
}

TEST(ChunkFrameTest, TheExampleOfTheWireFormat) {
  const std::string data = "123456789";
  const std::string bytes = ChunkPrefix({.offset = 1 << 20, .crc32c = 0xE3069283}, data.size()) + data;
  EXPECT_EQ(ToHex(bytes), "1080804025839206e31a09313233343536373839");
}

TEST(ChunkFrameTest, DataIsNotCopied) {
  const std::string bytes = SomeChunk().SerializeAsString();
  const auto frame = ParseWhole(bytes);
  ASSERT_TRUE(frame.ok());
  ASSERT_EQ(frame->data.size(), 1u);
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  EXPECT_GE(frame->data[0].data(), begin);
  EXPECT_LE(frame->data[0].data() + frame->data[0].size(), begin + bytes.size());
}

TEST(ChunkFrameTest, AnyCutIntoPiecesReadsTheSame) {
  const std::string bytes = SomeChunk().SerializeAsString() + SomeHeader().SerializeAsString();
  const ByteSpan whole = std::as_bytes(std::span(bytes));
  SplitMixGenerator random(11);
  for (int run = 0; run < 500; ++run) {
    std::vector<ByteSpan> pieces;
    for (size_t at = 0; at < whole.size();) {
      const size_t size = std::min<size_t>(random() % 9, whole.size() - at);  // empty ones among them
      pieces.push_back(whole.subspan(at, size));
      at += size;
    }
    EXPECT_TRUE(Compare(bytes, ParseChunkFrame(pieces)));
  }
}

TEST(ChunkFrameTest, UnknownFieldsAreSkippedAndRepeatedOnesOverwritten) {
  // Field 15 as a varint, a fixed64, bytes and a fixed32; field 3 (data) as a varint; then data twice.
  const std::string bytes = std::string("\x78\x96\x01", 3) +
                            std::string(
                                "\x79"
                                "12345678",
                                9) +
                            std::string(
                                "\x7a\x03"
                                "abc",
                                5) +
                            std::string(
                                "\x7d"
                                "1234",
                                5) +
                            std::string("\x18\x05", 2) +
                            std::string(
                                "\x1a\x02"
                                "xy",
                                4) +
                            std::string(
                                "\x1a\x03"
                                "uvw",
                                5);
  const auto frame = ParseWhole(bytes);
  ASSERT_TRUE(Compare(bytes, frame));
  EXPECT_EQ(DataOf(*frame), "uvw");
}

TEST(ChunkFrameTest, RejectsWhatNoClientSends) {
  const std::string header = SomeHeader().SerializeAsString();
  EXPECT_THAT(std::string(ParseWhole(header + header).status().message()), HasSubstr("header"));
  v1::PushChunk large;
  large.mutable_header()->mutable_worker()->set_worker(std::string(kMaxChunkHeaderBytes, 'w'));
  EXPECT_THAT(std::string(ParseWhole(large.SerializeAsString()).status().message()), HasSubstr("header"));
  EXPECT_THAT(std::string(ParseWhole("\x7b\x7c").status().message()), HasSubstr("group"));
  EXPECT_FALSE(ParseWhole(std::string("\x00\x00", 2)).ok());
  EXPECT_FALSE(ParseWhole("\x1a\xff\xff\xff\xff\x7f").ok());  // more data than there is
  EXPECT_FALSE(ParseWhole("\x1a\xff\xff\xff\xff\xff\x01").ok());
  EXPECT_FALSE(ParseWhole(std::string(20, '\xff')).ok());
}

/// Bytes that are nearly a message: where a reader goes wrong if it does.
std::string Mutated(std::string bytes, SplitMixGenerator& random) {
  const uint64_t changes = 1 + random() % 4;
  for (uint64_t i = 0; i < changes && !bytes.empty(); ++i) {
    const size_t at = random() % bytes.size();
    switch (random() % 6) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
        break;
      case 2:
        bytes.erase(at, 1 + random() % 5);
        break;
      case 3:
        bytes.insert(at, 1 + random() % 3, static_cast<char>(random()));
        break;
      case 4:
        bytes.resize(at);
        break;
      default:
        bytes.insert(at, bytes.substr(0, random() % bytes.size()));
        break;
    }
  }
  return bytes;
}

TEST(ChunkFrameTest, MutatedMessagesMeanTheSameToProtobuf) {
  SplitMixGenerator random(2026);
  const std::vector<std::string> seeds = {SomeChunk().SerializeAsString(), SomeHeader().SerializeAsString(),
                                          SomeHeader().SerializeAsString() + SomeChunk().SerializeAsString(),
                                          ChunkPrefix({.offset = 5, .crc32c = 9}, 4) + "data"};
  int taken = 0;
  constexpr int kRuns = 60'000;
  for (int run = 0; run < kRuns; ++run) {
    const std::string bytes = Mutated(seeds[run % seeds.size()], random);
    taken += Compare(bytes, ParseWhole(bytes)) ? 1 : 0;
    ASSERT_FALSE(HasFailure()) << run;
  }
  // Neither reader sees only rubbish, nor only messages.
  EXPECT_GT(taken, kRuns / 10);
  EXPECT_LT(taken, kRuns * 9 / 10);
}

}  // namespace
}  // namespace atl

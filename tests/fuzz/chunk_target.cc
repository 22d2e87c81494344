#include <algorithm>
#include <string>
#include <vector>

#include "atoll/v1/coordinator.pb.h"
#include "client/rpc/chunks.h"
#include "protos/wire/chunk_frame.h"
#include "protos/wire/chunk_message.h"
#include "server/rpc/receiver.h"
#include "tests/fuzz/targets.h"

namespace atl::fuzz {
namespace {

std::string Joined(const std::vector<ByteSpan>& pieces) {
  std::string all;
  for (const ByteSpan piece : pieces) all.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  return all;
}

/// What was read by hand is what protobuf reads.
void CompareWithProtobuf(const ChunkFrame& frame, std::span<const std::byte> message) {
  v1::PushChunk theirs;
  const bool parsed = theirs.ParseFromArray(message.data(), static_cast<int>(message.size()));
  // It also looks into the header, which here are bytes that somebody else reads.
  v1::PushHeader header;
  const bool header_parsed = header.ParseFromString(frame.header);
  ATOLL_FUZZ_REQUIRE(parsed == header_parsed);
  if (!parsed) return;
  ATOLL_FUZZ_REQUIRE(theirs.has_header() == frame.has_header);
  ATOLL_FUZZ_REQUIRE(theirs.offset() == frame.fields.offset);
  ATOLL_FUZZ_REQUIRE(theirs.crc32c() == frame.fields.crc32c);
  ATOLL_FUZZ_REQUIRE(static_cast<int32_t>(theirs.compression()) == frame.fields.compression);
  ATOLL_FUZZ_REQUIRE(theirs.uncompressed_bytes() == frame.fields.uncompressed_bytes);
  ATOLL_FUZZ_REQUIRE(theirs.data() == Joined(frame.data));
}

/// As the coordinator's upload and the worker's pull take it.
void TakeChunk(const ChunkFrame& frame) {
  WireChunk chunk{.offset = frame.fields.offset,
                  .data = frame.data,
                  .bytes = frame.data_bytes,
                  .crc32c = frame.fields.crc32c};
  if (frame.fields.compression == v1::COMPRESSION_ZSTD) {
    chunk.packing = ChunkPacking::kZstd;
    chunk.bytes = frame.fields.uncompressed_bytes;
  }
  ChunkUnpacker unpacker;
  const auto unpacked = unpacker.Unpack(chunk);
  if (unpacked.ok()) static_cast<void>(CheckChunk(*unpacked));
  std::vector<std::byte> place(8192);
  ChunkPlacer placer(place);
  const absl::Status placed = placer.Place(frame);
  ATOLL_FUZZ_REQUIRE(placed.ok() || placer.received_bytes() == 0);
  ATOLL_FUZZ_REQUIRE(placer.received_bytes() <= place.size());
}

}  // namespace

// cuts:u8 and as many u16, where the message is cut into pieces; then the message.
void FuzzChunkFrame(FuzzInput in) {
  std::vector<size_t> cuts(in.Byte() % 8);
  for (size_t& cut : cuts) cut = in.Number(2);
  const std::span<const std::byte> message = in.Rest();
  std::ranges::sort(cuts);
  std::vector<ByteSpan> pieces;
  size_t from = 0;
  for (const size_t cut : cuts) {
    const size_t to = std::min(cut, message.size());
    pieces.push_back(message.subspan(from, to - from));
    from = to;
  }
  pieces.push_back(message.subspan(from));
  const auto frame = ParseChunkFrame(pieces);
  const ByteSpan one[] = {message};
  ATOLL_FUZZ_REQUIRE(ParseChunkFrame(one).ok() == frame.ok());
  if (!frame.ok()) return;
  ATOLL_FUZZ_REQUIRE(frame->header.size() <= kMaxChunkHeaderBytes);
  ATOLL_FUZZ_REQUIRE(frame->data_bytes <= message.size());
  CompareWithProtobuf(*frame, message);
  TakeChunk(*frame);
}

}  // namespace atl::fuzz

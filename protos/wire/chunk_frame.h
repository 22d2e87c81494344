#ifndef ATOLL_PROTOS_WIRE_CHUNK_FRAME_H_
#define ATOLL_PROTOS_WIRE_CHUNK_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

// PushChunk and PullChunk read and written by hand, so that megabytes of data are neither copied into a
// message nor out of one. Still plain protobuf: what is written here any protobuf library reads, and the
// other way round (docs/reference/wire_format.md, "Bytes"). No gRPC and no protobuf here.

namespace atl {

using ByteSpan = std::span<const std::byte>;

/// What a header may take; the rest of a message that has one is refused unread.
inline constexpr size_t kMaxChunkHeaderBytes = size_t{64} << 10;

/// The fields beside header and data.
struct ChunkFields {
  uint64_t offset = 0;
  uint32_t crc32c = 0;
  int32_t compression = 0;  // v1::Compression
  uint32_t uncompressed_bytes = 0;
};

/// One message as it stands in its bytes, which it borrows.
struct ChunkFrame {
  bool has_header = false;
  std::string header;  // serialised
  ChunkFields fields;
  std::vector<ByteSpan> data;  // one after the other
  size_t data_bytes = 0;
};

/// Reads a message that arrived in these pieces. As protobuf does: a field given twice counts as it stands
/// last, unknown fields and fields of another type are skipped. InvalidArgument for what is no such message,
/// and for what protobuf would take but no client of ours sends: groups, two headers, a header above
/// kMaxChunkHeaderBytes. Work and memory are bounded by the message's size.
absl::StatusOr<ChunkFrame> ParseChunkFrame(std::span<const ByteSpan> pieces);

/// What stands before `data_bytes` bytes of data in a message with these fields.
std::string ChunkPrefix(const ChunkFields& fields, size_t data_bytes);

}  // namespace atl

#endif  // ATOLL_PROTOS_WIRE_CHUNK_FRAME_H_

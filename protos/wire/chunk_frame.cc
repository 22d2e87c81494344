#include "protos/wire/chunk_frame.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/status.h"

namespace atl {
namespace {

// Of PushChunk and PullChunk in protos/atoll/v1/coordinator.proto; chunk_message.cc compares.
enum Field : uint32_t {
  kHeader = 1,
  kOffset = 2,
  kData = 3,
  kCrc32c = 4,
  kCompression = 5,
  kUncompressedBytes = 6,
};

// https://protobuf.dev/programming-guides/encoding/
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

constexpr uint32_t TagOf(uint32_t field, WireType type) { return field << 3 | type; }

absl::Status Malformed(const char* what) {
  return absl::InvalidArgumentError(absl::StrFormat("a chunk that is no protobuf message: %s", what));
}

/// Walks over bytes in pieces, front to back.
class PieceReader {
 public:
  explicit PieceReader(std::span<const ByteSpan> pieces) : pieces_(pieces) {
    for (const ByteSpan piece : pieces) left_ += piece.size();
    DropEmpty();
  }

  size_t left() const { return left_; }

  /// A varint of at most `max_bytes` bytes; bits above the 64th fall away, as they do in protobuf.
  absl::StatusOr<uint64_t> Varint(int max_bytes) {
    uint64_t value = 0;
    for (int i = 0; i < max_bytes; ++i) {
      if (left_ == 0) return Malformed("it ends within a number");
      const auto byte = static_cast<uint64_t>(current_.front());
      Advance(1);
      value |= (byte & 0x7f) << (7 * i);
      if (byte < 0x80) return value;
    }
    return Malformed("a number is too long");
  }

  absl::StatusOr<uint32_t> Fixed32() {
    if (left_ < sizeof(uint32_t)) return Malformed("it ends within a number");
    uint32_t value = 0;
    for (unsigned shift = 0; shift < 32; shift += 8) {
      value |= static_cast<uint32_t>(current_.front()) << shift;
      Advance(1);
    }
    return value;
  }

  absl::Status Skip(uint64_t bytes) {
    return Take(bytes, [](ByteSpan) {});
  }

  /// Hands on the next bytes, piece by piece.
  template <typename Each>
  absl::Status Take(uint64_t bytes, const Each& each) {
    if (bytes > left_) return Malformed("it ends within a field");
    while (bytes > 0) {
      const ByteSpan part = current_.first(std::min<uint64_t>(bytes, current_.size()));
      each(part);
      Advance(part.size());
      bytes -= part.size();
    }
    return absl::OkStatus();
  }

 private:
  void Advance(size_t bytes) {
    current_ = current_.subspan(bytes);
    left_ -= bytes;
    DropEmpty();
  }
  void DropEmpty() {
    while (current_.empty() && !pieces_.empty()) {
      current_ = pieces_.front();
      pieces_ = pieces_.subspan(1);
    }
  }

  std::span<const ByteSpan> pieces_;
  ByteSpan current_;
  size_t left_ = 0;
};

// Five bytes hold what protobuf reads of a tag or a length; ten what it reads of a value.
constexpr int kTagBytes = 5;
constexpr int kValueBytes = 10;

absl::Status ReadHeader(PieceReader& in, ChunkFrame& frame) {
  ATOLL_ASSIGN_OR_RETURN(const uint64_t size, in.Varint(kTagBytes));
  if (frame.has_header) return absl::InvalidArgumentError("header: a message has at most one");
  if (size > kMaxChunkHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("header: takes %d bytes; at most %d are allowed", size, kMaxChunkHeaderBytes));
  }
  frame.has_header = true;
  return in.Take(size, [&](ByteSpan part) {
    frame.header.append(reinterpret_cast<const char*>(part.data()), part.size());
  });
}

absl::Status ReadData(PieceReader& in, ChunkFrame& frame) {
  ATOLL_ASSIGN_OR_RETURN(const uint64_t size, in.Varint(kTagBytes));
  frame.data.clear();
  frame.data_bytes = size;
  return in.Take(size, [&](ByteSpan part) { frame.data.push_back(part); });
}

absl::Status SkipField(PieceReader& in, uint32_t tag) {
  switch (tag & 7) {
    case kVarint:
      return in.Varint(kValueBytes).status();
    case kFixed64:
      return in.Skip(sizeof(uint64_t));
    case kFixed32:
      return in.Skip(sizeof(uint32_t));
    case kLengthDelimited: {
      ATOLL_ASSIGN_OR_RETURN(const uint64_t size, in.Varint(kTagBytes));
      return in.Skip(size);
    }
    case 3:
      return Malformed("it has a group");
    default:
      return Malformed("a field has no type");
  }
}

absl::Status ReadField(PieceReader& in, ChunkFrame& frame) {
  ATOLL_ASSIGN_OR_RETURN(const uint64_t number, in.Varint(kTagBytes));
  const auto tag = static_cast<uint32_t>(number);
  switch (tag) {
    case TagOf(kHeader, kLengthDelimited):
      return ReadHeader(in, frame);
    case TagOf(kData, kLengthDelimited):
      return ReadData(in, frame);
    case TagOf(kOffset, kVarint): {
      ATOLL_ASSIGN_OR_RETURN(frame.fields.offset, in.Varint(kValueBytes));
      return absl::OkStatus();
    }
    case TagOf(kCrc32c, kFixed32): {
      ATOLL_ASSIGN_OR_RETURN(frame.fields.crc32c, in.Fixed32());
      return absl::OkStatus();
    }
    case TagOf(kCompression, kVarint): {
      ATOLL_ASSIGN_OR_RETURN(const uint64_t value, in.Varint(kValueBytes));
      frame.fields.compression = static_cast<int32_t>(value);
      return absl::OkStatus();
    }
    case TagOf(kUncompressedBytes, kVarint): {
      ATOLL_ASSIGN_OR_RETURN(const uint64_t value, in.Varint(kValueBytes));
      frame.fields.uncompressed_bytes = static_cast<uint32_t>(value);
      return absl::OkStatus();
    }
    default:
      if (tag >> 3 == 0) return Malformed("a field has the number 0");
      return SkipField(in, tag);
  }
}

void AppendVarint(uint64_t value, std::string& out) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

/// As every proto3 writer: a field that has its default is left out.
void AppendNumber(Field field, uint64_t value, std::string& out) {
  if (value == 0) return;
  AppendVarint(TagOf(field, kVarint), out);
  AppendVarint(value, out);
}

}  // namespace

absl::StatusOr<ChunkFrame> ParseChunkFrame(std::span<const ByteSpan> pieces) {
  ChunkFrame frame;
  PieceReader in(pieces);
  while (in.left() > 0) ATOLL_RETURN_IF_ERROR(ReadField(in, frame));
  return frame;
}

std::string ChunkPrefix(const ChunkFields& fields, size_t data_bytes) {
  std::string out;
  AppendNumber(kOffset, fields.offset, out);
  if (fields.crc32c != 0) {
    AppendVarint(TagOf(kCrc32c, kFixed32), out);
    for (unsigned shift = 0; shift < 32; shift += 8)
      out.push_back(static_cast<char>(fields.crc32c >> shift & 0xff));
  }
  AppendNumber(kCompression, static_cast<uint64_t>(fields.compression), out);
  AppendNumber(kUncompressedBytes, fields.uncompressed_bytes, out);
  if (data_bytes == 0) return out;
  AppendVarint(TagOf(kData, kLengthDelimited), out);
  AppendVarint(data_bytes, out);
  return out;
}

}  // namespace atl

#ifndef ATOLL_PROTOS_WIRE_CHUNK_MESSAGE_H_
#define ATOLL_PROTOS_WIRE_CHUNK_MESSAGE_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "protos/wire/chunk_frame.h"

// Chunks as gRPC carries them when neither side lets it serialise: grpc::ByteBuffer.

namespace atl {

/// What gRPC puts before each message: a flag and a length.
inline constexpr uint64_t kMessagePrefixBytes = 5;

/// The pieces in which a message arrived, held for as long as this lives.
class MessagePieces {
 public:
  explicit MessagePieces(const grpc::ByteBuffer& message);
  MessagePieces(const MessagePieces&) = delete;
  MessagePieces& operator=(const MessagePieces&) = delete;

  std::span<const ByteSpan> pieces() const { return pieces_; }

 private:
  std::vector<grpc::Slice> slices_;
  std::vector<ByteSpan> pieces_;
};

/// A chunk whose data is `data`, which `owner` keeps alive and unchanged until gRPC has sent it, or given it
/// up.
grpc::ByteBuffer ChunkMessage(const ChunkFields& fields, ByteSpan data, std::shared_ptr<const void> owner);

/// Any other message, and back. InvalidArgument naming the type when the bytes are not one.
grpc::ByteBuffer MessageToBytes(const google::protobuf::MessageLite& message);
absl::Status MessageFromBytes(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite* message);

}  // namespace atl

#endif  // ATOLL_PROTOS_WIRE_CHUNK_MESSAGE_H_

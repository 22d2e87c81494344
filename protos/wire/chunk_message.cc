#include "protos/wire/chunk_message.h"

#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "atoll/v1/coordinator.pb.h"

namespace atl {
namespace {

// chunk_frame.cc has one set of field numbers for both messages.
template <typename Chunk>
constexpr bool HasOurFields() {
  return Chunk::kHeaderFieldNumber == 1 && Chunk::kOffsetFieldNumber == 2 && Chunk::kDataFieldNumber == 3 &&
         Chunk::kCrc32CFieldNumber == 4 && Chunk::kCompressionFieldNumber == 5 &&
         Chunk::kUncompressedBytesFieldNumber == 6;
}
static_assert(HasOurFields<v1::PushChunk>() && HasOurFields<v1::PullChunk>());

using Owner = std::shared_ptr<const void>;

void ReleaseOwner(void* owner) { delete static_cast<Owner*>(owner); }

grpc::Slice Copied(const std::string& bytes) { return grpc::Slice(bytes); }

}  // namespace

MessagePieces::MessagePieces(const grpc::ByteBuffer& message) {
  // A message without a byte has no slices to give.
  if (!message.Valid() || !message.Dump(&slices_).ok()) return;
  pieces_.reserve(slices_.size());
  for (const grpc::Slice& slice : slices_) {
    pieces_.emplace_back(reinterpret_cast<const std::byte*>(slice.begin()), slice.size());
  }
}

grpc::ByteBuffer ChunkMessage(const ChunkFields& fields, ByteSpan data, std::shared_ptr<const void> owner) {
  auto* const held = new Owner(std::move(owner));
  const grpc::Slice slices[] = {
      Copied(ChunkPrefix(fields, data.size())),
      // gRPC's interface has no const; it only reads.
      grpc::Slice(const_cast<std::byte*>(data.data()), data.size(), ReleaseOwner, held)};
  return grpc::ByteBuffer(slices, 2);
}

grpc::ByteBuffer MessageToBytes(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice = Copied(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

absl::Status MessageFromBytes(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite* message) {
  const MessagePieces pieces(bytes);
  std::string whole;
  for (const ByteSpan piece : pieces.pieces()) {
    whole.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  if (message->ParseFromString(whole)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("the message is no %s", message->GetTypeName()));
}

}  // namespace atl

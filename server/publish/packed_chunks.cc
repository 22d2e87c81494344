#include "server/publish/packed_chunks.h"

#include "common/block_compression.h"

namespace atl {

std::optional<PackedChunks::Frame> PackedChunks::Find(size_t index) const {
  const MutexLock lock(&mutex_);
  return index < frames_.size() ? frames_[index] : std::nullopt;
}

PackedChunks::Frame PackedChunks::Pack(size_t index, std::span<const std::byte> chunk) {
  const MutexLock packing(&packing_);
  if (const std::optional<Frame> made = Find(index)) return *made;
  std::vector<std::byte> room(LargestPacked(chunk.size()));
  const size_t size = BlockCompressor().Compress(chunk, room);
  Frame frame;
  if (size > 0) {
    frame = std::make_shared<const std::vector<std::byte>>(room.begin(),
                                                           room.begin() + static_cast<ptrdiff_t>(size));
  }
  const MutexLock lock(&mutex_);
  if (frames_.size() <= index) frames_.resize(index + 1);
  frames_[index] = frame;
  return frame;
}

}  // namespace atl

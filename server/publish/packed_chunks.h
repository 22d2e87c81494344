#ifndef ATOLL_SERVER_PUBLISH_PACKED_CHUNKS_H_
#define ATOLL_SERVER_PUBLISH_PACKED_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/mutex.h"

namespace atl {

/// The chunks of one published payload as zstd frames. Each is packed when somebody first asks for it, and
/// kept as long as the payload: a version is pulled by all workers at about the same time. Thread-safe.
/// Memory: none before the first frame; never more than the payload has.
class PackedChunks {
 public:
  /// Null: the chunk does not get smaller by more than 1 part in 64, and travels as it is.
  using Frame = std::shared_ptr<const std::vector<std::byte>>;

  /// None: nobody has packed it yet. Never waits for somebody who does.
  std::optional<Frame> Find(size_t index) const ABSL_LOCKS_EXCLUDED(mutex_);
  /// Packs it, unless it is: some milliseconds of work, during which others wait here. `chunk` is the same
  /// for the same index.
  Frame Pack(size_t index, std::span<const std::byte> chunk) ABSL_LOCKS_EXCLUDED(packing_, mutex_);

 private:
  Mutex packing_ ABSL_ACQUIRED_BEFORE(mutex_);  // one at a time: who comes second finds what the first made
  mutable Mutex mutex_;
  std::vector<std::optional<Frame>> frames_ ABSL_GUARDED_BY(mutex_);  // by index; grows as they are asked for
};

}  // namespace atl

#endif  // ATOLL_SERVER_PUBLISH_PACKED_CHUNKS_H_

#ifndef ATOLL_SERVER_PUBLISH_SNAPSHOT_H_
#define ATOLL_SERVER_PUBLISH_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/ids.h"
#include "core/contribution.h"
#include "core/protocol/pull.h"
#include "core/run_options.h"
#include "server/publish/packed_chunks.h"

namespace atl {

/// What turns the published values of one version into those of the next (docs/reference/outer_step.md,
/// "Delta pulls"): to = from + decode(payload), one rounded addition for each value. Immutable, shared.
struct PublishedDelta {
  Version from;
  Version to;
  CodecKind codec = CodecKind::kInt8;
  ContentHash published;               // of the float32 values of `to`
  std::vector<std::byte> payload;      // of all the fragment's values
  std::vector<uint32_t> chunk_crc32c;  // as Snapshot's
  std::shared_ptr<PackedChunks> packed = std::make_shared<PackedChunks>();
};
using DeltaPtr = std::shared_ptr<const PublishedDelta>;

/// One published version of one fragment, immutable: what a pull streams. Held by shared pointer, so that a
/// slow reader keeps its own version alive and takes no lock.
struct Snapshot {
  Epoch epoch;
  FragmentId fragment;
  Version version;
  CodecKind codec = CodecKind::kFp32;
  uint64_t elements = 0;
  uint64_t committed_tokens = 0;       // over the whole run, at this version
  ContentHash published;               // of `payload`
  std::span<const std::byte> payload;  // the published encoding, owned by `owner`
  std::shared_ptr<const void> owner;
  std::vector<uint32_t> chunk_crc32c;  // of each kWireChunkBytes of payload, the last one shorter
  DeltaPtr delta;                      // from the version before; null: delta pulls are off, or nobody has it
  std::shared_ptr<PackedChunks> packed = std::make_shared<PackedChunks>();  // of `payload`
};
using SnapshotPtr = std::shared_ptr<const Snapshot>;

}  // namespace atl

#endif  // ATOLL_SERVER_PUBLISH_SNAPSHOT_H_

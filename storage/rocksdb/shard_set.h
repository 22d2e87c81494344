#ifndef ATOLL_STORAGE_ROCKSDB_SHARD_SET_H_
#define ATOLL_STORAGE_ROCKSDB_SHARD_SET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ids.h"
#include "common/task_queue.h"
#include "storage/record.h"
#include "storage/rocksdb/shard_db.h"
#include "storage/run_store.h"

namespace atl {

/// All shards of a run, each with its writer thread. A call cuts a fragment into chunks (MapChunks), lets
/// every shard do its own, and returns when all are done, with the first error in shard order. Thread-safe: a
/// shard takes calls one after the other.
class ShardSet {
 public:
  struct Options {
    std::string folder;         // shards/
    std::string staging;        // sst/
    std::string unique_prefix;  // of staged files, new in every life of the process
    uint32_t shards = 0;
    uint64_t chunk_elements = 0;
    DbAccess access = DbAccess::kReadWrite;
  };
  /// kCreate makes the folders and databases; otherwise DataLoss when one is not there.
  static absl::StatusOr<std::unique_ptr<ShardSet>> Open(const Options& options);
  /// "00", "01" ..: a shard's folder.
  static std::string FolderName(uint32_t shard);

  /// Writes and syncs the version in every shard. After an error it may be in some; repeat it or drop it.
  absl::Status Store(FragmentId fragment, Version version, const FragmentTensorsView& tensors);
  /// `target` has the entry's shape.
  absl::Status Read(const StoredEntry& stored, Version version, const FragmentTensorsTarget& target);
  /// The entry has the range.
  absl::Status ReadRange(const StoredEntry& stored, Version version, const VectorPosition& from,
                         std::span<float> values);
  /// A consistent copy of every shard below `folder`, as ShardDb::CopyTo.
  absl::Status CopyTo(const std::string& folder);
  absl::Status Drop(FragmentId fragment, const std::vector<Version>& versions);
  /// Drops everything but what these entries name. `all` is in order of fragments, dense from 0.
  absl::Status DropAllBut(const std::vector<StoredEntry>& all);
  /// The versions that something is there of in any shard, with the number of the shard.
  struct Found {
    uint32_t shard = 0;
    FragmentId fragment;
    Version version;
  };
  std::vector<Found> Versions() const;
  /// DataLoss naming the shard when the newest version of the entry has not all of its chunks.
  absl::Status CheckComplete(const StoredEntry& stored);

 private:
  struct Shard {
    std::unique_ptr<ShardDb> db;
    std::unique_ptr<TaskQueue> writer;  // joined before db goes
  };

  ShardSet(const Options& options, std::vector<Shard> shards)
      : chunk_elements_(options.chunk_elements), shards_(std::move(shards)) {}

  std::vector<Chunk> ChunksOf(FragmentId fragment, uint64_t elements) const;
  absl::Status OnAll(const std::function<absl::Status(ShardId, ShardDb&)>& work);

  const uint64_t chunk_elements_;
  const std::vector<Shard> shards_;
};

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_SHARD_SET_H_

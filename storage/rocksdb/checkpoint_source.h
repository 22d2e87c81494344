#ifndef ATOLL_STORAGE_ROCKSDB_CHECKPOINT_SOURCE_H_
#define ATOLL_STORAGE_ROCKSDB_CHECKPOINT_SOURCE_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "storage/rocksdb/data_dir.h"
#include "storage/rocksdb/shard_set.h"
#include "storage/run_store.h"
#include "storage/store_index.h"

namespace atl {

/// A checkpoint's folder, or a data directory that nobody uses, read without changing it.
class CheckpointSource final : public VersionSource {
 public:
  struct Opened {
    Recovery recovery;
    std::unique_ptr<CheckpointSource> source;
  };
  /// DataLoss: it cannot have been written by this program. FailedPrecondition: not seeded.
  static absl::StatusOr<Opened> Open(const std::string& folder);

  absl::StatusOr<StoredEntry> Stored(FragmentId fragment) override;
  absl::Status ReadInto(const FragmentLayout& layout, Version version,
                        const FragmentTensorsTarget& target) override;
  absl::Status ReadRange(const FragmentLayout& layout, Version version, const VectorPosition& from,
                         std::span<float> values) override;
  absl::StatusOr<std::unique_ptr<Payload>> OpenPayload(const ContributionKey& key) override;

 private:
  CheckpointSource(DataDir dir, StoreIndex store_index, std::unique_ptr<ShardSet> shards)
      : dir_(std::move(dir)), store_index_(std::move(store_index)), shards_(std::move(shards)) {}

  const DataDir dir_;
  const StoreIndex store_index_;
  const std::unique_ptr<ShardSet> shards_;
};

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_CHECKPOINT_SOURCE_H_

#ifndef ATOLL_STORAGE_ROCKSDB_CHECKPOINT_COPY_H_
#define ATOLL_STORAGE_ROCKSDB_CHECKPOINT_COPY_H_

#include <string>

#include "absl/status/statusor.h"
#include "storage/checkpoint.h"
#include "storage/rocksdb/checkpoint_folder.h"
#include "storage/rocksdb/data_dir.h"
#include "storage/rocksdb/meta_db.h"
#include "storage/rocksdb/shard_set.h"

namespace atl {

/// Puts the parts of a checkpoint into `folder`: the records without open rounds, the shards, and the
/// payloads of counted contributions, as links where the file system has them. Nothing that StoreVersion
/// drops may go while it runs.
absl::StatusOr<CheckpointFolder::Filled> CopyRun(const DataDir& dir, MetaDb& meta, ShardSet& shards,
                                                 const CheckpointRequest& request, const std::string& folder);

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_CHECKPOINT_COPY_H_

#ifndef ATOLL_STORAGE_ROCKSDB_ROCKSDB_OPTIONS_H_
#define ATOLL_STORAGE_ROCKSDB_ROCKSDB_OPTIONS_H_

#include <rocksdb/env.h>
#include <rocksdb/options.h>

#include <cstdint>

#include "core/disk_plan.h"
#include "storage/rocksdb/db_access.h"
#include "storage/rocksdb/file_caching.h"

// All tuning of RocksDB, in one place, with its reasons in the .cc.

namespace atl {

/// A new file of tensors is begun beyond this many bytes of values.
inline constexpr uint64_t kMaxTensorFileBytes = uint64_t{512} << 20;
/// Reopening meta after a full disk flushes the memtable and starts new files.
inline constexpr uint64_t kMetaReopenBytes = 2 * kMetaWriteBufferBytes;

/// `meta`: small records, every promise a synced write of the log.
rocksdb::Options MetaOptions(DbAccess access);
/// A shard: values of some MiB that arrive as finished files and leave as whole files.
rocksdb::Options ShardOptions(DbAccess access = DbAccess::kReadWrite);
/// How a file that is on its way into a shard is written.
rocksdb::EnvOptions TensorFileOptions(FileCaching caching);
rocksdb::IngestExternalFileOptions IngestOptions();

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_ROCKSDB_OPTIONS_H_

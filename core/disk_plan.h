#ifndef ATOLL_CORE_DISK_PLAN_H_
#define ATOLL_CORE_DISK_PLAN_H_

#include <cstdint>

// Disk space of a data directory besides versions, contributions and checkpoints. The store uses these
// constants, `atollctl plan` and `doctor` count them, and a test compares them with a new data directory.

namespace atl {

/// Payloads and tensors leave this much space free, so that the small records, on which all guarantees rest,
/// still fit when the disk fills up.
inline constexpr uint64_t kDiskReserveBytes = uint64_t{64} << 20;
/// Size of the memtable of the small records. Their write-ahead log reserves this plus a tenth ahead.
inline constexpr uint64_t kMetaWriteBufferBytes = uint64_t{4} << 20;
/// Step in which each database's list of files (RocksDB's MANIFEST) reserves disk space.
inline constexpr uint64_t kFileListStepBytes = uint64_t{64} << 10;

/// Upper bound of a data directory's size before it holds tensors: `shards` databases and the database of the
/// small records, while a restart replaces their logs and lists.
constexpr uint64_t EmptyDirectoryBytes(uint32_t shards) {
  constexpr uint64_t kLogBytes = kMetaWriteBufferBytes + kMetaWriteBufferBytes / 10;
  constexpr uint64_t kSmallFiles = uint64_t{64} << 10;  // options and names, a disk block or two each
  return 2 * kLogBytes + (shards + uint64_t{1}) * (2 * kFileListStepBytes + kSmallFiles) + kSmallFiles;
}

}  // namespace atl

#endif  // ATOLL_CORE_DISK_PLAN_H_

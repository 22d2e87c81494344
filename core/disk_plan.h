#ifndef ATOLL_CORE_DISK_PLAN_H_
#define ATOLL_CORE_DISK_PLAN_H_

#include <cstdint>

// What a data directory takes of the disk besides versions, contributions and checkpoints. The store works
// with these constants, `atollctl plan` and `doctor` count them, and a test holds a new data directory
// against them.

namespace atl {

/// Payloads and tensors leave this much of the disk free, so that the small records which promises rest on
/// still find room when the disk fills up.
inline constexpr uint64_t kDiskReserveBytes = uint64_t{64} << 20;
/// Of the memtable of the small records. Their write-ahead log reserves this and a tenth of it ahead.
inline constexpr uint64_t kMetaWriteBufferBytes = uint64_t{4} << 20;
/// The list of files of each database (RocksDB's MANIFEST) reserves its disk space in steps of this.
inline constexpr uint64_t kFileListStepBytes = uint64_t{64} << 10;

/// Upper bound of what a data directory takes before it holds any tensor: `shards` databases and that of the
/// small records, while a restart replaces their logs and lists.
constexpr uint64_t EmptyDirectoryBytes(uint32_t shards) {
  constexpr uint64_t kLogBytes = kMetaWriteBufferBytes + kMetaWriteBufferBytes / 10;
  constexpr uint64_t kSmallFiles = uint64_t{64} << 10;  // options and names, a disk block or two each
  return 2 * kLogBytes + (shards + uint64_t{1}) * (2 * kFileListStepBytes + kSmallFiles) + kSmallFiles;
}

}  // namespace atl

#endif  // ATOLL_CORE_DISK_PLAN_H_

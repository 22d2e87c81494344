#ifndef ATOLL_STORAGE_ROCKSDB_LOG_CHECK_H_
#define ATOLL_STORAGE_ROCKSDB_LOG_CHECK_H_

#include <string>

#include "absl/status/status.h"

// RocksDB reads a log up to the first record that is not whole, and takes that for the place where the power
// was cut. A flipped bit in the middle then silently takes every record behind it. These checks tell the two
// apart before RocksDB opens the database. They change nothing.
//
// What a crash leaves (the format is RocksDB's: blocks of 32 KiB; records of checksum, length, type,
// payload):
// - A sector of 512 bytes is written as a whole or not at all. A sector that was not written holds zeros
// where
//   the record would be. A record whose every sector holds something, and whose checksum is wrong, was
//   damaged after it was written.
// - A file ends behind a record, where a sector ends, or inside a record of 64 KiB and more, which may take
//   several writes.
// - When a synced write has been followed by another write, everything before it is on the disk.

namespace atl {

/// Checks every write-ahead log in this folder of `meta`, and the manifest that CURRENT names. DataLoss with
/// the file and the byte where no crash can have left what is there.
absl::Status CheckMetaLogs(const std::string& folder);

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_LOG_CHECK_H_

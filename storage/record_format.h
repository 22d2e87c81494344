#ifndef ATOLL_STORAGE_RECORD_FORMAT_H_
#define ATOLL_STORAGE_RECORD_FORMAT_H_

#include <cstddef>
#include <cstdint>

// Constants of the records in `meta`; the grammar is docs/reference/storage_format.md.

namespace atl {

/// First byte of every record. Raised when a body changes in a way that an older reader would misread.
inline constexpr uint8_t kRecordFormat = 1;

/// Second byte. Never reuse a number.
enum class RecordKind : uint8_t {
  kIdentity = 1,
  kManifest = 2,
  kConfig = 3,
  kWorker = 4,
  kPartition = 5,
  kHead = 6,
  kStored = 7,
  kRound = 8,
  kContribution = 9,
  kEvaluation = 10,
  kEvent = 11,
  kControl = 12,
  kConfirmation = 13,
};

inline constexpr size_t kRecordHeaderBytes = 2;   // format, kind
inline constexpr size_t kRecordTrailerBytes = 4;  // crc32c of all before it
inline constexpr size_t kMinRecordBytes = kRecordHeaderBytes + kRecordTrailerBytes;
/// RocksDB's bound on a value is 4 GiB; a manifest of kMaxTensors with names and shapes stays far below this.
inline constexpr size_t kMaxRecordBytes = size_t{256} << 20;

}  // namespace atl

#endif  // ATOLL_STORAGE_RECORD_FORMAT_H_

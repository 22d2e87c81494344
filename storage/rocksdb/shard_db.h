#ifndef ATOLL_STORAGE_ROCKSDB_SHARD_DB_H_
#define ATOLL_STORAGE_ROCKSDB_SHARD_DB_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ids.h"
#include "storage/rocksdb/db_access.h"
#include "storage/rocksdb/file_caching.h"

namespace rocksdb {
class DB;
}

namespace atl {

/// A piece of one vector of a fragment: vector 0 is theta, 1.. the outer optimizer's state.
struct ChunkValue {
  uint8_t vector = 0;
  uint32_t chunk = 0;
  std::span<const float> values;
};
struct ChunkTarget {
  uint8_t vector = 0;
  uint32_t chunk = 0;
  std::span<float> values;  // filled
  /// Set: `values` are a part of a chunk of `of` values, from the value `first` on.
  uint64_t first = 0;
  uint64_t of = 0;
};

/// One shard's tensors. Files are built aside, synced, and ingested; versions leave as whole files. After an
/// error (a full disk) the next write reopens the database, which holds nothing but finished files. Not
/// thread-safe: its writer thread owns it.
class ShardDb {
 public:
  struct Options {
    std::string path;
    std::string staging;  // folder for files on their way in, on the same file system
    /// Begins the names of staged files; never used before in this folder.
    std::string unique_prefix;
    FileCaching caching = FileCaching::kCached;
    DbAccess access = DbAccess::kReadWrite;
  };
  static absl::StatusOr<std::unique_ptr<ShardDb>> Open(Options options);
  ~ShardDb();

  /// All values of a version that belong here, ascending by (vector, chunk). Replaces what an earlier attempt
  /// left of this version. ResourceExhausted when the disk is full; nothing is then visible.
  absl::Status Ingest(FragmentId fragment, Version version, const std::vector<ChunkValue>& values);

  /// Removes versions in [from, to) of the fragment; absent `to`: all from there on.
  absl::Status Drop(FragmentId fragment, Version from, std::optional<Version> to);
  /// Removes every fragment with an id of `first` or more.
  absl::Status DropFragmentsFrom(FragmentId first);

  /// DataLoss naming the chunk when it is missing, damaged or of another size.
  absl::Status Read(FragmentId fragment, Version version, const ChunkTarget& target) const;
  /// A copy as of now in the folder `path`, which is not there yet: files shared by hard links where
  /// possible.
  absl::Status CopyTo(const std::string& path);
  /// How many values a version has here, without reading them.
  absl::StatusOr<uint64_t> CountValues(FragmentId fragment, Version version) const;

  /// The versions that something is here of, without order.
  std::vector<std::pair<FragmentId, Version>> Versions() const;

 private:
  explicit ShardDb(Options options);

  absl::Status OpenDatabase();
  absl::Status EnsureHealthy();
  absl::Status CheckOpen() const;
  absl::Status DropRange(const std::string& begin, const std::string& end);
  absl::Status IngestFiles(const std::vector<std::string>& files);

  Options options_;                        // `access` is as it is opened next: a database is made once
  std::unique_ptr<rocksdb::DB> database_;  // null after a reopening that failed
  bool broken_ = false;
  uint64_t next_file_ = 0;
};

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_SHARD_DB_H_

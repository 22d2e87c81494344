#ifndef ATOLL_STORAGE_ROCKSDB_META_DB_H_
#define ATOLL_STORAGE_ROCKSDB_META_DB_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "storage/rocksdb/db_access.h"

namespace rocksdb {
class DB;
class Env;
}  // namespace rocksdb

namespace atl {

/// Changes that become visible together or not at all.
class MetaBatch {
 public:
  void Put(std::string key, std::string value) { changes_.emplace_back(std::move(key), std::move(value)); }
  void Delete(std::string key) { changes_.emplace_back(std::move(key), std::nullopt); }
  const std::vector<std::pair<std::string, std::optional<std::string>>>& changes() const { return changes_; }

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> changes_;
};

/// kSynced survives power loss once OK; kBuffered survives kill -9.
enum class Durability { kSynced, kBuffered };

/// The database of small records. Concurrent synced writes share one sync (RocksDB's group commit).
///
/// After a failed write RocksDB refuses all others, and whether the failed one is in the log is not known.
/// The next Write therefore reopens the database first and puts every key of a failed write back to its last
/// acknowledged value: a write that was reported as failed never shows up later in this process. (After a
/// crash it may: an answer that was never given.) No two concurrent writes may name the same key.
/// Thread-safe.
class MetaDb {
 public:
  /// `env` (RocksDB's own when null) outlives the database; tests inject faults with it.
  static absl::StatusOr<std::unique_ptr<MetaDb>> Open(const std::string& path, rocksdb::Env* env = nullptr,
                                                      DbAccess access = DbAccess::kCreate);
  ~MetaDb();

  /// ResourceExhausted when the disk is full; the same write may be repeated when there is room.
  absl::Status Write(const MetaBatch& batch, Durability durability);

  /// Repairs the database after a failed write, if there was one: no write is in doubt after that. Errors as
  /// of Write.
  absl::Status Settle();

  /// Calls `visit` for keys in [begin, end) in order until it says false; its error ends the scan.
  /// Unavailable while the database could not be reopened after a failed write.
  using Visitor = std::function<absl::StatusOr<bool>(std::string_view key, std::string_view value)>;
  absl::Status Scan(std::string_view begin, std::string_view end, const Visitor& visit);

  /// Names of the table files that it consists of. For a database that nobody writes to.
  std::vector<std::string> TableFiles() const;

  /// A copy of every record acknowledged by now, in the folder `path`, which is not there yet.
  absl::Status CopyTo(const std::string& path);

 private:
  MetaDb(std::string path, rocksdb::Env* env, DbAccess access);

  absl::Status OpenDatabase();
  absl::Status WriteLocked(const MetaBatch& batch, Durability durability);
  void RememberAcknowledged(const MetaBatch& batch);
  absl::Status Repair();

  const std::string path_;
  rocksdb::Env* const env_;
  DbAccess access_;  // as it is opened next: a database is made once
  // Shared by everyone who uses database_, alone by who replaces it.
  std::shared_mutex database_mutex_;
  std::unique_ptr<rocksdb::DB> database_;  // null after a reopening that failed
  std::atomic<bool> broken_ = false;
  Mutex mutex_;
  // Keys of failed writes with their last acknowledged values.
  std::map<std::string, std::optional<std::string>> in_doubt_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_META_DB_H_

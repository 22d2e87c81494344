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
/// After a failed write RocksDB rejects all later writes, and it is unknown whether the failed one is in the
/// log. So the next Write first reopens the database and resets every key of a failed write to its last
/// acknowledged value: a write reported as failed never appears later in this process. (It may appear after a
/// crash, because no answer was given.) Concurrent writes must not name the same key. Thread-safe.
class MetaDb {
 public:
  /// `env` (RocksDB's own when null) outlives the database; tests inject faults with it.
  static absl::StatusOr<std::unique_ptr<MetaDb>> Open(const std::string& path, rocksdb::Env* env = nullptr,
                                                      DbAccess access = DbAccess::kCreate);
  ~MetaDb();

  /// ResourceExhausted if the disk is full; the same write may be repeated when there is space.
  absl::Status Write(const MetaBatch& batch, Durability durability);

  /// Repairs the database after a failed write, if there was one; afterwards the state of every write is
  /// known. Errors as for Write.
  absl::Status Settle();

  /// Calls `visit` for keys in [begin, end) in order until it says false; its error ends the scan.
  /// Unavailable while the database could not be reopened after a failed write.
  using Visitor = std::function<absl::StatusOr<bool>(std::string_view key, std::string_view value)>;
  absl::Status Scan(std::string_view begin, std::string_view end, const Visitor& visit);

  /// Names of its table files. For a database without writers.
  std::vector<std::string> TableFiles() const;

  /// Copies every record acknowledged so far to the new folder `path`.
  absl::Status CopyTo(const std::string& path);

 private:
  MetaDb(std::string path, rocksdb::Env* env, DbAccess access);

  absl::Status OpenDatabase();
  absl::Status WriteLocked(const MetaBatch& batch, Durability durability);
  void RememberAcknowledged(const MetaBatch& batch);
  absl::Status Repair();

  const std::string path_;
  rocksdb::Env* const env_;
  DbAccess access_;  // for the next opening: a database is created once
  // Held shared by users of database_, exclusively to replace it.
  std::shared_mutex database_mutex_;
  std::unique_ptr<rocksdb::DB> database_;  // null after a reopening that failed
  std::atomic<bool> broken_ = false;
  Mutex mutex_;
  // Keys of failed writes with their last acknowledged values.
  std::map<std::string, std::optional<std::string>> in_doubt_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace atl

#endif  // ATOLL_STORAGE_ROCKSDB_META_DB_H_

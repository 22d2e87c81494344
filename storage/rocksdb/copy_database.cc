#include "storage/rocksdb/copy_database.h"

#include <rocksdb/db.h>
#include <rocksdb/utilities/checkpoint.h>

#include <cstdint>
#include <memory>

#include "absl/strings/str_format.h"
#include "common/status.h"
#include "storage/rocksdb/rocksdb_status.h"

namespace atl {

absl::Status CopyDatabase(rocksdb::DB& database, const std::string& from, const std::string& to) {
  const std::string doing = absl::StrFormat("copy %s to %s", from, to);
  rocksdb::Checkpoint* created = nullptr;
  ATOLL_RETURN_IF_ERROR(FromRocksDb(rocksdb::Checkpoint::Create(&database, &created), doing));
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(created);
  // Without a flush: a flush that meets a full disk would stop all writes, the log can simply be copied.
  constexpr uint64_t kNeverFlush = UINT64_MAX;
  return FromRocksDb(checkpoint->CreateCheckpoint(to, kNeverFlush), doing);
}

}  // namespace atl

#include "storage/rocksdb/meta_db.h"

#include <rocksdb/db.h>
#include <rocksdb/metadata.h>
#include <rocksdb/write_batch.h>

#include <mutex>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/file.h"
#include "common/status.h"
#include "storage/rocksdb/copy_database.h"
#include "storage/rocksdb/rocksdb_options.h"
#include "storage/rocksdb/rocksdb_status.h"

namespace atl {
namespace {

rocksdb::WriteBatch ToRocksDb(const MetaBatch& batch) {
  rocksdb::WriteBatch out;
  for (const auto& [key, value] : batch.changes()) {
    // Neither fails: the batch has no size limit.
    (value ? out.Put(key, *value) : out.Delete(key)).PermitUncheckedError();
  }
  return out;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetaDb>> MetaDb::Open(const std::string& path, rocksdb::Env* env,
                                                     DbAccess access) {
  std::unique_ptr<MetaDb> meta(new MetaDb(path, env, access));
  ATOLL_RETURN_IF_ERROR(meta->OpenDatabase());
  return meta;
}

MetaDb::MetaDb(std::string path, rocksdb::Env* env, DbAccess access)
    : path_(std::move(path)), env_(env), access_(access) {}

MetaDb::~MetaDb() = default;

absl::Status MetaDb::OpenDatabase() {
  rocksdb::DB* database = nullptr;
  rocksdb::Options options = MetaOptions(access_);
  if (env_ != nullptr) options.env = env_;
  const rocksdb::Status status = access_ == DbAccess::kReadOnly
                                     ? rocksdb::DB::OpenForReadOnly(options, path_, &database)
                                     : rocksdb::DB::Open(options, path_, &database);
  database_.reset(database);
  ATOLL_RETURN_IF_ERROR(FromOpening(status, path_, access_));
  if (access_ == DbAccess::kCreate) access_ = DbAccess::kReadWrite;
  return absl::OkStatus();
}

absl::Status MetaDb::Write(const MetaBatch& batch, Durability durability) {
  while (true) {
    ATOLL_RETURN_IF_ERROR(Settle());
    std::shared_lock shared(database_mutex_);
    if (!broken_.load()) return WriteLocked(batch, durability);
  }
}

absl::Status MetaDb::Settle() {
  if (!broken_.load()) return absl::OkStatus();
  std::unique_lock alone(database_mutex_);
  return broken_.load() ? Repair() : absl::OkStatus();
}

absl::Status MetaDb::WriteLocked(const MetaBatch& batch, Durability durability) {
  rocksdb::WriteOptions options;
  options.sync = durability == Durability::kSynced;
  rocksdb::WriteBatch changes = ToRocksDb(batch);
  const rocksdb::Status status = database_->Write(options, &changes);
  if (status.ok()) return absl::OkStatus();
  RememberAcknowledged(batch);
  broken_.store(true);
  return FromRocksDb(status, absl::StrFormat("write to %s", path_));
}

void MetaDb::RememberAcknowledged(const MetaBatch& batch) {
  // A write that failed in the log is not in the memtable: reads still see what was acknowledged.
  MutexLock lock(&mutex_);
  for (const auto& [key, value] : batch.changes()) {
    std::string acknowledged;
    const rocksdb::Status status = database_->Get(rocksdb::ReadOptions(), key, &acknowledged);
    in_doubt_.try_emplace(key, status.ok() ? std::optional(std::move(acknowledged)) : std::nullopt);
  }
}

absl::Status MetaDb::Repair() {
  // RocksDB 9 writes a new CURRENT while it closes, also into the mount point of a volume that is gone.
  const std::string current = JoinPath(path_, "CURRENT");
  if (!FileExists(current)) {
    return absl::DataLossError(absl::StrFormat(
        "open %s: the file %s is missing; restore the folder or its volume, and the run continues", path_,
        current));
  }
  ATOLL_ASSIGN_OR_RETURN(const uint64_t free_bytes, FreeBytes(path_));
  if (free_bytes < kMetaReopenBytes) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("write to %s: the disk is full (%d bytes free, %d needed to continue); nothing is "
                        "lost: free some space, and the run continues",
                        path_, free_bytes, kMetaReopenBytes));
  }
  database_.reset();
  ATOLL_RETURN_IF_ERROR(OpenDatabase());
  MutexLock lock(&mutex_);
  MetaBatch undo;
  for (const auto& [key, value] : in_doubt_) value ? undo.Put(key, *value) : undo.Delete(key);
  rocksdb::WriteOptions options;
  options.sync = true;
  rocksdb::WriteBatch changes = ToRocksDb(undo);
  ATOLL_RETURN_IF_ERROR(
      FromRocksDb(database_->Write(options, &changes), absl::StrFormat("write to %s", path_)));
  in_doubt_.clear();
  broken_.store(false);
  return absl::OkStatus();
}

absl::Status MetaDb::Scan(std::string_view begin, std::string_view end, const Visitor& visit) {
  std::shared_lock shared(database_mutex_);
  if (database_ == nullptr) {
    return absl::UnavailableError(absl::StrFormat("%s could not be reopened after a failed write", path_));
  }
  const rocksdb::Slice upper(end.data(), end.size());
  rocksdb::ReadOptions options;
  if (!end.empty()) options.iterate_upper_bound = &upper;
  const std::unique_ptr<rocksdb::Iterator> it(database_->NewIterator(options));
  for (it->Seek(rocksdb::Slice(begin.data(), begin.size())); it->Valid(); it->Next()) {
    ATOLL_ASSIGN_OR_RETURN(const bool more, visit(std::string_view(it->key().data(), it->key().size()),
                                                  std::string_view(it->value().data(), it->value().size())));
    if (!more) break;
  }
  return FromRocksDb(it->status(), absl::StrFormat("read %s", path_));
}

std::vector<std::string> MetaDb::TableFiles() const {
  std::vector<rocksdb::LiveFileMetaData> files;
  database_->GetLiveFilesMetaData(&files);
  std::vector<std::string> names;
  for (const rocksdb::LiveFileMetaData& file : files) names.emplace_back(absl::StripPrefix(file.name, "/"));
  return names;
}

absl::Status MetaDb::CopyTo(const std::string& path) {
  std::shared_lock shared(database_mutex_);
  if (database_ == nullptr || broken_.load()) {
    return absl::UnavailableError(absl::StrFormat("%s cannot be copied while writes to it fail", path_));
  }
  return CopyDatabase(*database_, path_, path);
}

}  // namespace atl

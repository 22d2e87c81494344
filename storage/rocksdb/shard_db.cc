#include "storage/rocksdb/shard_db.h"

#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/metadata.h>
#include <rocksdb/table_properties.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/fault_point.h"
#include "common/file.h"
#include "common/status.h"
#include "storage/describe.h"
#include "storage/rocksdb/copy_database.h"
#include "storage/rocksdb/rocksdb_options.h"
#include "storage/rocksdb/rocksdb_status.h"
#include "storage/rocksdb/tensor_files.h"

namespace atl {

absl::StatusOr<std::unique_ptr<ShardDb>> ShardDb::Open(Options options) {
  std::unique_ptr<ShardDb> shard(new ShardDb(std::move(options)));
  ATOLL_RETURN_IF_ERROR(shard->OpenDatabase());
  return shard;
}

ShardDb::ShardDb(Options options) : options_(std::move(options)) {}

ShardDb::~ShardDb() = default;

absl::Status ShardDb::OpenDatabase() {
  rocksdb::DB* database = nullptr;
  const rocksdb::Options options = ShardOptions(options_.access);
  const rocksdb::Status status = options_.access == DbAccess::kReadOnly
                                     ? rocksdb::DB::OpenForReadOnly(options, options_.path, &database)
                                     : rocksdb::DB::Open(options, options_.path, &database);
  database_.reset(database);
  ATOLL_RETURN_IF_ERROR(FromOpening(status, options_.path, options_.access));
  if (options_.access == DbAccess::kCreate) options_.access = DbAccess::kReadWrite;
  return absl::OkStatus();
}

absl::Status ShardDb::EnsureHealthy() {
  if (!broken_) return absl::OkStatus();
  database_.reset();
  ATOLL_RETURN_IF_ERROR(OpenDatabase());
  broken_ = false;
  return absl::OkStatus();
}

absl::Status ShardDb::CheckOpen() const {
  if (database_ != nullptr) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrFormat("%s could not be reopened after a failed write", options_.path));
}

absl::Status ShardDb::Ingest(FragmentId fragment, Version version, const std::vector<ChunkValue>& values) {
  ATOLL_RETURN_IF_ERROR(Drop(fragment, version, Next(version)));
  if (values.empty()) return absl::OkStatus();
  const auto new_path = [this] {
    return absl::StrFormat("%s/%s-%06d.sst", options_.staging, options_.unique_prefix, next_file_++);
  };
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                         WriteTensorFiles(fragment, version, values, options_.caching, new_path));
  FaultPoint("ingest.written");
  const absl::Status ingested = IngestFiles(files);
  FaultPoint("ingest.done");
  if (!ingested.ok()) {
    for (const std::string& file : files) RemoveFile(file).IgnoreError();
  }
  return ingested;
}

absl::Status ShardDb::IngestFiles(const std::vector<std::string>& files) {
  const rocksdb::Status status = database_->IngestExternalFile(files, IngestOptions());
  broken_ = !status.ok();
  return FromRocksDb(status, absl::StrFormat("ingest into %s", options_.path));
}

absl::Status ShardDb::CopyTo(const std::string& path) {
  ATOLL_RETURN_IF_ERROR(EnsureHealthy());
  return CopyDatabase(*database_, options_.path, path);
}

absl::Status ShardDb::DropRange(const std::string& begin, const std::string& end) {
  ATOLL_RETURN_IF_ERROR(EnsureHealthy());
  const rocksdb::Slice first(begin);
  const rocksdb::Slice last(end);
  const rocksdb::Status status = rocksdb::DeleteFilesInRange(
      database_.get(), database_->DefaultColumnFamily(), &first, &last, /*include_end=*/false);
  broken_ = !status.ok();
  return FromRocksDb(status, absl::StrFormat("drop old versions in %s", options_.path));
}

absl::Status ShardDb::Drop(FragmentId fragment, Version from, std::optional<Version> to) {
  if (to && *to <= from) return absl::OkStatus();
  return DropRange(
      TensorKeysBegin(fragment, from),
      to ? TensorKeysBegin(fragment, *to) : TensorKeysBegin(FragmentId(fragment.value() + 1), Version(0)));
}

absl::Status ShardDb::DropFragmentsFrom(FragmentId first) {
  return DropRange(TensorKeysBegin(first, Version(0)), std::string(32, '\xff'));
}

absl::Status ShardDb::Read(FragmentId fragment, Version version, const ChunkTarget& target) const {
  ATOLL_RETURN_IF_ERROR(CheckOpen());
  const std::string what = absl::StrFormat("read %s vector %d chunk %d from %s", Describe(fragment, version),
                                           target.vector, target.chunk, options_.path);
  rocksdb::PinnableSlice value;
  const rocksdb::Status status =
      database_->Get(rocksdb::ReadOptions(), database_->DefaultColumnFamily(),
                     TensorKey(fragment, version, target.vector, target.chunk), &value);
  if (status.IsNotFound()) return absl::DataLossError(absl::StrFormat("%s: it is missing", what));
  ATOLL_RETURN_IF_ERROR(FromRocksDb(status, what));
  const uint64_t expected = target.of == 0 ? target.values.size_bytes() : target.of * sizeof(float);
  if (value.size() != expected) {
    return absl::DataLossError(absl::StrFormat("%s: %d bytes instead of %d", what, value.size(), expected));
  }
  std::memcpy(target.values.data(), value.data() + target.first * sizeof(float), target.values.size_bytes());
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ShardDb::CountValues(FragmentId fragment, Version version) const {
  ATOLL_RETURN_IF_ERROR(CheckOpen());
  // The end of a range counts as inside it here: the last key that a version can have, not the next version's
  // first.
  const std::string begin = TensorKeysBegin(fragment, version);
  const std::string end = TensorKey(fragment, version, 0xff, 0xffffffff);
  const rocksdb::Range range(begin, end);
  rocksdb::TablePropertiesCollection tables;
  ATOLL_RETURN_IF_ERROR(FromRocksDb(
      database_->GetPropertiesOfTablesInRange(database_->DefaultColumnFamily(), &range, 1, &tables),
      absl::StrFormat("read table properties of %s", options_.path)));
  uint64_t values = 0;
  for (const auto& [file, properties] : tables) values += properties->num_entries;
  return values;
}

std::vector<std::pair<FragmentId, Version>> ShardDb::Versions() const {
  std::vector<rocksdb::LiveFileMetaData> files;
  database_->GetLiveFilesMetaData(&files);
  std::vector<std::pair<FragmentId, Version>> versions;
  for (const rocksdb::LiveFileMetaData& file : files) {
    // A file holds values of one version.
    const auto version = VersionOfTensorKey(file.smallestkey);
    if (version) versions.push_back(*version);
  }
  return versions;
}

}  // namespace atl

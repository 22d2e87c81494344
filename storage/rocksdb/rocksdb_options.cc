#include "storage/rocksdb/rocksdb_options.h"

#include <rocksdb/env.h>
#include <rocksdb/table.h>

#include <cstdarg>
#include <memory>

namespace atl {
namespace {

class NoLog final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  NoLog() : rocksdb::Logger(rocksdb::InfoLogLevel::FATAL_LEVEL) {}
  void Logv(const char* format, va_list arguments) override {}
};

rocksdb::Options CommonOptions(DbAccess access) {
  rocksdb::Options options;
  options.create_if_missing = access == DbAccess::kCreate;
  options.compression = rocksdb::kNoCompression;  // float32 noise does not compress; records are small
  // RocksDB's own text log goes nowhere: every error comes back as a status, and with assertions on (Debian's
  // build) the second line that it cannot write to a full disk aborts the process.
  options.info_log = std::make_shared<NoLog>();
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  // Else every open starts threads to open table files with, and RocksDB throws when it gets none: a restore
  // on a machine without threads would end the coordinator.
  options.max_file_opening_threads = 1;
  // RocksDB's 4 MiB in every shard would be most of a small run's disk. A version adds a few hundred bytes.
  options.manifest_preallocation_size = kFileListStepBytes;
  return options;
}

}  // namespace

rocksdb::Options MetaOptions(DbAccess access) {
  rocksdb::Options options = CommonOptions(access);
  options.write_buffer_size = kMetaWriteBufferBytes;
  options.target_file_size_base = 16 << 20;
  // Whatever a power cut tore is behind the last synced write, and nothing behind a tear was promised: the
  // log is read up to the first tear. RocksDB takes any damage for a tear; log_check.h, which is asked
  // before, does not.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  // MetaDb repairs it, when the disk is there. RocksDB would write into whatever is mounted at its path by
  // then.
  options.max_bgerror_resume_count = 0;
  return options;
}

rocksdb::Options ShardOptions(DbAccess access) {
  rocksdb::Options options = CommonOptions(access);
  // Nothing overlaps, so there is nothing to compact: every version is its own key range.
  options.disable_auto_compactions = true;
  // Never written to, except that RocksDB must have one.
  options.write_buffer_size = 64 << 10;
  // Start writing back while the file is still being filled, or the sync at its end has all of it to do.
  options.bytes_per_sync = 8 << 20;
  rocksdb::BlockBasedTableOptions table;
  // Each value is larger than a block, hence a block of its own; it is read once, at start-up or by a tool:
  // a cache would only hold a second copy of the model.
  table.no_block_cache = true;
  table.checksum = rocksdb::kXXH3;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

rocksdb::EnvOptions TensorFileOptions(FileCaching caching) {
  rocksdb::EnvOptions options(ShardOptions());
  // A version is written once and read only after a restart: through the page cache it costs a second copy of
  // every byte, three times the processor time (bench/commit_bench) and the cache of everything else.
  options.use_direct_writes = caching == FileCaching::kBypassed;
  return options;
}

rocksdb::IngestExternalFileOptions IngestOptions() {
  rocksdb::IngestExternalFileOptions options;
  options.move_files = true;           // a hard link: the bytes are written once
  options.write_global_seqno = false;  // or the file would be rewritten in place after its sync
  return options;
}

}  // namespace atl

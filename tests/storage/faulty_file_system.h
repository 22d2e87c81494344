#ifndef ATOLL_TESTS_STORAGE_FAULTY_FILE_SYSTEM_H_
#define ATOLL_TESTS_STORAGE_FAULTY_FILE_SYSTEM_H_

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace atl {

/// The machine's file system, but write-ahead logs cannot be synced while `fail_log_sync` is set: the bytes
/// are in the file, and nobody knows whether they will stay. While `fail_tables` is set, no table file can be
/// created, so a flush fails.
class FaultyFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  FaultyFileSystem() : rocksdb::FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "FaultyFileSystem"; }

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override {
    if (fail_tables && path.ends_with(".sst"))
      return rocksdb::IOStatus::NoSpace("injected: No space left on device");
    const rocksdb::IOStatus opened = FileSystemWrapper::NewWritableFile(path, options, result, debug);
    if (opened.ok() && path.ends_with(".log"))
      *result = std::make_unique<Log>(std::move(*result), this, path);
    return opened;
  }

  /// The same database as a power cut right now would leave it: a copy of its folder in which every
  /// write-ahead log ends where it was last synced.
  void CopyAsAfterAPowerCut(const std::string& from, const std::string& to) {
    std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
    const std::lock_guard lock(mutex_);
    for (const auto& entry : std::filesystem::directory_iterator(to)) {
      if (entry.path().extension() != ".log") continue;
      std::filesystem::resize_file(entry.path(), synced_[entry.path().filename().string()]);
    }
  }

  std::atomic<bool> fail_log_sync = false;
  std::atomic<bool> fail_tables = false;

 private:
  class Log final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    Log(std::unique_ptr<rocksdb::FSWritableFile> file, FaultyFileSystem* owner, const std::string& path)
        : rocksdb::FSWritableFileOwnerWrapper(std::move(file)),
          owner_(owner),
          name_(std::filesystem::path(path).filename()) {}
    rocksdb::IOStatus Sync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
      if (owner_->fail_log_sync) return rocksdb::IOStatus::NoSpace("injected: No space left on device");
      const uint64_t bytes = GetFileSize(options, debug);
      const rocksdb::IOStatus synced = FSWritableFileOwnerWrapper::Sync(options, debug);
      const std::lock_guard lock(owner_->mutex_);
      if (synced.ok()) owner_->synced_[name_] = bytes;
      return synced;
    }
    rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
      return Sync(options, debug);
    }

   private:
    FaultyFileSystem* const owner_;
    const std::string name_;
  };

  std::mutex mutex_;
  std::map<std::string, uint64_t> synced_;  // bytes of each log, by name
};

}  // namespace atl

#endif  // ATOLL_TESTS_STORAGE_FAULTY_FILE_SYSTEM_H_

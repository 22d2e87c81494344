#ifndef ATOLL_TESTS_STORAGE_FAULTY_FILE_SYSTEM_H_
#define ATOLL_TESTS_STORAGE_FAULTY_FILE_SYSTEM_H_

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

namespace atoll {

/// The machine's file system, but write-ahead logs cannot be synced while `fail_log_sync` is set: the bytes
/// are in the file, and nobody knows whether they will stay.
class FaultyFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  FaultyFileSystem() : rocksdb::FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "FaultyFileSystem"; }

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override {
    const rocksdb::IOStatus opened = FileSystemWrapper::NewWritableFile(path, options, result, debug);
    if (opened.ok() && path.ends_with(".log")) *result = std::make_unique<Log>(std::move(*result), this);
    return opened;
  }

  std::atomic<bool> fail_log_sync = false;

 private:
  class Log final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    Log(std::unique_ptr<rocksdb::FSWritableFile> file, FaultyFileSystem* owner)
        : rocksdb::FSWritableFileOwnerWrapper(std::move(file)), owner_(owner) {}
    rocksdb::IOStatus Sync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
      if (owner_->fail_log_sync) return rocksdb::IOStatus::NoSpace("injected: No space left on device");
      return FSWritableFileOwnerWrapper::Sync(options, debug);
    }
    rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* debug) override {
      return Sync(options, debug);
    }

   private:
    FaultyFileSystem* const owner_;
  };
};

}  // namespace atoll

#endif  // ATOLL_TESTS_STORAGE_FAULTY_FILE_SYSTEM_H_

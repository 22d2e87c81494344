#ifndef ATOLL_COMMON_DURABLE_FILE_H_
#define ATOLL_COMMON_DURABLE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/file_descriptor.h"

namespace atl {

/// How to treat an existing file.
enum class OpenMode { kCreateNew, kCreateOrOpen, kTruncate, kOpenExisting, kReadOnly };

/// A file that is written at offsets and synced on request. Thread-safe like pwrite and fdatasync: different
/// threads may write different ranges, and Sync covers all earlier writes. Every error names the file. A full
/// disk is ResourceExhausted and does not damage earlier data. After a failed Sync the kernel may have
/// dropped the pages: write the file again instead of calling Sync again.
class DurableFile {
 public:
  /// Creating a file does not sync its folder; see FsyncDir.
  static absl::StatusOr<DurableFile> Open(const std::string& path, OpenMode mode);

  DurableFile() = default;
  DurableFile(DurableFile&&) noexcept = default;
  DurableFile& operator=(DurableFile&&) noexcept = default;

  absl::Status WriteAt(uint64_t offset, std::span<const std::byte> bytes);
  /// Fills `out`; OutOfRange if the file ends earlier.
  absl::Status ReadAt(uint64_t offset, std::span<std::byte> out) const;
  /// fdatasync: the bytes and the size survive a power cut.
  absl::Status Sync();
  /// Cuts or extends (with zeros) the file.
  absl::Status Truncate(uint64_t size);
  /// Reserves disk blocks for the range, so that a full disk is noticed before the data arrives. OK if the
  /// file system cannot reserve blocks.
  absl::Status Reserve(uint64_t bytes);
  absl::StatusOr<uint64_t> Size() const;
  /// Closes the file and returns the error of close. The destructor also closes, but ignores errors.
  absl::Status Close();

  bool is_open() const { return fd_.valid(); }
  const std::string& path() const { return path_; }

 private:
  DurableFile(FileDescriptor fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  FileDescriptor fd_;
  std::string path_;
};

}  // namespace atl

#endif  // ATOLL_COMMON_DURABLE_FILE_H_

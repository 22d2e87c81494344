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

/// What becomes of a file that is already there.
enum class OpenMode { kCreateNew, kCreateOrOpen, kTruncate, kOpenExisting, kReadOnly };

/// A file written at offsets and synced when asked. Thread-safe as far as pwrite and fdatasync are: distinct
/// ranges may be written by distinct threads, Sync covers what was written before it was called. Every error
/// names the file; a full disk is ResourceExhausted and leaves what was written before intact. After a failed
/// Sync the pages are in doubt (the kernel drops them): write the file again, do not Sync again.
class DurableFile {
 public:
  /// Creating a file does not sync its folder; see FsyncDir.
  static absl::StatusOr<DurableFile> Open(const std::string& path, OpenMode mode);

  DurableFile() = default;
  DurableFile(DurableFile&&) noexcept = default;
  DurableFile& operator=(DurableFile&&) noexcept = default;

  absl::Status WriteAt(uint64_t offset, std::span<const std::byte> bytes);
  /// Fills `out`; OutOfRange when the file ends before.
  absl::Status ReadAt(uint64_t offset, std::span<std::byte> out) const;
  /// fdatasync: the bytes and the size survive a power cut.
  absl::Status Sync();
  /// Cuts or extends (with zeros) the file.
  absl::Status Truncate(uint64_t size);
  /// Reserves disk blocks for the range, so that a full disk shows before the data is there. A file system
  /// that cannot reserve is no error.
  absl::Status Reserve(uint64_t bytes);
  absl::StatusOr<uint64_t> Size() const;
  /// Closes and reports what close reports. The destructor closes too, silently.
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

#ifndef ATOLL_WORKER_DATA_INPUT_TEXT_SOURCE_H_
#define ATOLL_WORKER_DATA_INPUT_TEXT_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "common/file_descriptor.h"
#include "worker/data/input/decompressor.h"

namespace atl {

/// Tells whether a file was changed.
struct FileStamp {
  int64_t bytes = 0;
  int64_t modified_ns = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// Bytes of one file, plain, gzip (which includes dictzip's .dz) or zstd, told apart by content; "-" is the
/// standard input. Not thread-safe.
class TextSource {
 public:
  /// NotFound or PermissionDenied naming the file; InvalidArgument or FailedPrecondition for a folder and a
  /// device.
  static absl::StatusOr<TextSource> Open(const std::string& path, int max_window_log = kLargestWindowLog);

  TextSource(TextSource&&) noexcept = default;
  TextSource& operator=(TextSource&&) = delete;

  /// Appends the next piece to `text`: at most `max_bytes`, which are more than 0, and nothing only at the
  /// end. FailedPrecondition naming the file when it was changed since Open, known at its end. DataLoss
  /// naming the file when the compressed data is damaged or cut short.
  absl::Status Read(size_t max_bytes, std::string& text);

  /// Bytes of the file used so far, before decompression: for a progress bar.
  uint64_t position() const { return file_bytes_ - waiting().size(); }

 private:
  TextSource(FileDescriptor fd, std::string path, std::optional<FileStamp> stamp, int max_window_log)
      : fd_(std::move(fd)), path_(std::move(path)), stamp_(stamp), max_window_log_(max_window_log) {}
  std::string_view waiting() const { return std::string_view(buffer_).substr(used_); }
  /// Appends bytes of the file to those that wait; none at its end.
  absl::Status Fill();
  absl::Status Detect();
  absl::Status CheckUnchanged() const;
  absl::Status Damaged(const absl::Status& status) const;

  FileDescriptor fd_;
  std::string path_;
  std::optional<FileStamp> stamp_;  // when it was opened; nullopt: no regular file
  int max_window_log_;
  bool detected_ = false;
  std::unique_ptr<Decompressor> decompressor_;  // null: not compressed
  std::string buffer_;
  size_t used_ = 0;          // bytes at the front of buffer_
  uint64_t file_bytes_ = 0;  // read so far
  bool ended_ = false;
};

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_INPUT_TEXT_SOURCE_H_

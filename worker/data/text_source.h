#ifndef ATOLL_WORKER_DATA_TEXT_SOURCE_H_
#define ATOLL_WORKER_DATA_TEXT_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace atl {

/// Bytes of one text file, plain or gzip (which includes dictzip's .dz), told apart by content; "-" is the
/// standard input. Not thread-safe.
class TextSource {
 public:
  /// NotFound or PermissionDenied naming the file.
  static absl::StatusOr<TextSource> Open(const std::string& path);

  ~TextSource();
  TextSource(TextSource&&) noexcept;
  TextSource& operator=(TextSource&&) = delete;

  /// Replaces `text` with the next piece, at most `max_bytes`; empty at the end. DataLoss naming the file
  /// when the compressed data is damaged or cut short.
  absl::Status Read(size_t max_bytes, std::string& text);

  /// Bytes of the file read so far, before decompression: for a progress bar. Of a pipe, bytes of text.
  uint64_t position() const;
  /// Size of the file; 0 when it is not known.
  uint64_t size() const { return size_; }

 private:
  struct Stream;
  TextSource(std::unique_ptr<Stream> stream, std::string path, uint64_t size);

  std::unique_ptr<Stream> stream_;
  std::string path_;
  uint64_t size_ = 0;
  uint64_t text_bytes_ = 0;  // read so far
};

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_TEXT_SOURCE_H_

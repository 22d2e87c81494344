#ifndef ATOLL_WORKER_DATA_INPUT_DECOMPRESSOR_H_
#define ATOLL_WORKER_DATA_INPUT_DECOMPRESSOR_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace atl {

/// The bytes of one compressed file, in order. Errors are DataLoss with a text that continues "FILE: ...".
/// Not thread-safe.
class Decompressor {
 public:
  virtual ~Decompressor() = default;
  /// Appends at most `max_bytes` to `out`, and removes from the front of `in` the bytes that it used. Uses
  /// some or appends some, unless `in` is empty.
  virtual absl::Status Decompress(std::string_view& in, size_t max_bytes, std::string& out) = 0;
  /// Call it at the end of the file: an error if the data is not complete.
  virtual absl::Status Finish() const = 0;
};

/// How many bytes of a file tell its compression.
inline constexpr size_t kMagicBytes = 4;

/// `zstd --long=31`, which some published collections of text need. The window is memory: up to 2 GiB.
inline constexpr int kLargestWindowLog = 31;

/// gzip (also of several members, and dictzip) or zstd (also of several frames, with windows up to
/// 2^max_window_log), by the first bytes of the file; null: the file is not compressed.
absl::StatusOr<std::unique_ptr<Decompressor>> MakeDecompressor(std::string_view first_bytes,
                                                               int max_window_log = kLargestWindowLog);

// For MakeDecompressor. ResourceExhausted without memory.
absl::StatusOr<std::unique_ptr<Decompressor>> MakeGzipDecompressor();
absl::StatusOr<std::unique_ptr<Decompressor>> MakeZstdDecompressor(int max_window_log);

}  // namespace atl

#endif  // ATOLL_WORKER_DATA_INPUT_DECOMPRESSOR_H_

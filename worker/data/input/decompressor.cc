#include "worker/data/input/decompressor.h"

#include <cstdint>

namespace atl {
namespace {

bool IsGzip(std::string_view first) { return first.starts_with("\x1f\x8b"); }

/// A frame of data, or a frame to skip (RFC 8878).
bool IsZstd(std::string_view first) {
  if (first.starts_with("\x28\xb5\x2f\xfd")) return true;
  return first.size() >= 4 && (static_cast<uint8_t>(first[0]) & 0xf0) == 0x50 &&
         first.substr(1, 3) == "\x2a\x4d\x18";
}

}  // namespace

absl::StatusOr<std::unique_ptr<Decompressor>> MakeDecompressor(std::string_view first_bytes,
                                                               int max_window_log) {
  if (IsGzip(first_bytes)) return MakeGzipDecompressor();
  if (IsZstd(first_bytes)) return MakeZstdDecompressor(max_window_log);
  return std::unique_ptr<Decompressor>();
}

}  // namespace atl

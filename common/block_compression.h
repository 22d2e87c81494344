#ifndef ATOLL_COMMON_BLOCK_COMPRESSION_H_
#define ATOLL_COMMON_BLOCK_COMPRESSION_H_

#include <cstddef>
#include <memory>
#include <span>

#include "absl/status/status.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

// Compresses single blocks of bytes with zstd, each as a separate frame. Reuse one object for many blocks.
// Not thread-safe.

namespace atl {

/// Maximum compressed size of a block. A smaller gain is not worth the decompression.
constexpr size_t LargestPacked(size_t block_bytes) { return block_bytes - block_bytes / 64; }

class BlockCompressor {
 public:
  BlockCompressor();
  ~BlockCompressor();
  BlockCompressor(const BlockCompressor&) = delete;
  BlockCompressor& operator=(const BlockCompressor&) = delete;

  /// Compresses `block` into `out`. Returns the number of bytes written, or 0 if they do not fit into `out`.
  size_t Compress(std::span<const std::byte> block, std::span<std::byte> out);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const;
  };
  const std::unique_ptr<ZSTD_CCtx_s, Free> context_;
};

class BlockDecompressor {
 public:
  BlockDecompressor();
  ~BlockDecompressor();
  BlockDecompressor(const BlockDecompressor&) = delete;
  BlockDecompressor& operator=(const BlockDecompressor&) = delete;

  /// Decompresses one frame into `out`. InvalidArgument if `frame` is not a frame or its contents have
  /// another size than `out`. Never writes beyond `out` and never allocates by what the frame claims.
  absl::Status Decompress(std::span<const std::byte> frame, std::span<std::byte> out);

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const;
  };
  const std::unique_ptr<ZSTD_DCtx_s, Free> context_;
};

}  // namespace atl

#endif  // ATOLL_COMMON_BLOCK_COMPRESSION_H_

#ifndef ATOLL_COMMON_BLOCK_COMPRESSION_H_
#define ATOLL_COMMON_BLOCK_COMPRESSION_H_

#include <cstddef>
#include <memory>
#include <span>

#include "absl/status/status.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

// zstd over single blocks of bytes, each a frame of its own. Not thread-safe; one object serves many blocks.

namespace atl {

/// What a block may take packed: what gains less than this is not worth unpacking.
constexpr size_t LargestPacked(size_t block_bytes) { return block_bytes - block_bytes / 64; }

class BlockCompressor {
 public:
  BlockCompressor();
  ~BlockCompressor();
  BlockCompressor(const BlockCompressor&) = delete;
  BlockCompressor& operator=(const BlockCompressor&) = delete;

  /// Packs `block` into `out`; the size of what was written, 0 when it does not get smaller than `out`.
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

  /// Fills `out` from one frame. InvalidArgument when `frame` is none, or has another size than `out`:
  /// nothing is written beyond it, whatever the frame says, and no memory is taken for it.
  absl::Status Decompress(std::span<const std::byte> frame, std::span<std::byte> out);

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const;
  };
  const std::unique_ptr<ZSTD_DCtx_s, Free> context_;
};

}  // namespace atl

#endif  // ATOLL_COMMON_BLOCK_COMPRESSION_H_

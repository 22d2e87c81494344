#include "common/block_compression.h"

#include <zstd.h>

#include "absl/strings/str_format.h"

namespace atl {
namespace {

// Payloads are noise with a skewed distribution, so nearly all of the gain comes from the entropy coder.
// Every level has it, and level 1 is the fastest that compresses (docs/reference/benchmarks.md).
constexpr int kLevel = 1;

}  // namespace

void BlockCompressor::Free::operator()(ZSTD_CCtx_s* context) const { ZSTD_freeCCtx(context); }

BlockCompressor::BlockCompressor() : context_(ZSTD_createCCtx()) {}
BlockCompressor::~BlockCompressor() = default;

size_t BlockCompressor::Compress(std::span<const std::byte> block, std::span<std::byte> out) {
  const size_t size =
      ZSTD_compressCCtx(context_.get(), out.data(), out.size(), block.data(), block.size(), kLevel);
  return ZSTD_isError(size) != 0 ? 0 : size;
}

void BlockDecompressor::Free::operator()(ZSTD_DCtx_s* context) const { ZSTD_freeDCtx(context); }

BlockDecompressor::BlockDecompressor() : context_(ZSTD_createDCtx()) {}
BlockDecompressor::~BlockDecompressor() = default;

absl::Status BlockDecompressor::Decompress(std::span<const std::byte> frame, std::span<std::byte> out) {
  const size_t size = ZSTD_decompressDCtx(context_.get(), out.data(), out.size(), frame.data(), frame.size());
  if (ZSTD_isError(size) != 0) {
    return absl::InvalidArgumentError(absl::StrFormat("%d bytes are not a zstd frame of %d bytes: %s",
                                                      frame.size(), out.size(), ZSTD_getErrorName(size)));
  }
  if (size == out.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("a zstd frame holds %d bytes, but %d were announced", size, out.size()));
}

}  // namespace atl

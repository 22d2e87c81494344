#include <cstddef>
#include <span>
#include <vector>

#include "common/block_compression.h"
#include "tests/fuzz/targets.h"

namespace atl::fuzz {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;  // of a chunk

}  // namespace

// size:u24 that the frame is said to unpack to, then the frame.
void FuzzZstdBlock(FuzzInput in) {
  std::vector<std::byte> out(in.Number(3) % (kMostBytes + 1));
  BlockDecompressor decompressor;
  if (!decompressor.Decompress(in.Rest(), out).ok()) return;
  BlockCompressor compressor;
  std::vector<std::byte> frame(out.size() + 64);
  const size_t packed = compressor.Compress(out, frame);
  if (packed == 0) return;
  std::vector<std::byte> again(out.size());
  ATOLL_FUZZ_REQUIRE(decompressor.Decompress(std::span(frame).first(packed), again).ok());
  ATOLL_FUZZ_REQUIRE(again == out);
}

}  // namespace atl::fuzz

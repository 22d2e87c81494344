#include "common/content_hash.h"

#include <algorithm>
#include <vector>

#include "common/block_hasher.h"
#include "common/random.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

std::vector<std::byte> Noise(size_t n) {
  SplitMixGenerator random(7);
  std::vector<std::byte> bytes(n);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

// XXH3-128's published value for the empty input (xxHash's sanity test vectors, seed 0).
TEST(ContentHashTest, ABlockInPiecesHasTheDigestOfTheBlock) {
  const std::vector<std::byte> block = Noise(300001);
  for (const size_t piece : {size_t{1}, size_t{255}, size_t{65536}, block.size()}) {
    BlockHasher hasher;
    for (size_t at = 0; at < block.size(); at += piece) {
      hasher.Add(std::span(block).subspan(at, std::min(piece, block.size() - at)));
    }
    EXPECT_EQ(hasher.Digest(), HashBlock(block)) << piece;
  }
  EXPECT_EQ(BlockHasher().Digest(), HashBlock({}));
}

TEST(ContentHashTest, BlockIsXxh3) { EXPECT_EQ(ToHex(HashBlock({})), "99aa06d3014798d86001c324468d497f"); }

// Frozen: these values are on people's disks.
TEST(ContentHashTest, Golden) {
  EXPECT_EQ(ToHex(HashBytes({})), "2c0a8a99dc147d5445c3b49d035665b2");
  EXPECT_EQ(ToHex(HashBytes(Noise(1000))), "70cbd253c6c93d73a7776c809cea8508");
  EXPECT_EQ(ToHex(HashBytes(Noise(2 * kHashBlockBytes + 5))), "446ad99aef7e426c3671e26eaebc3004");
}

TEST(ContentHashTest, BlocksInAnyOrderMakeTheSameHash) {
  for (const size_t size :
       {size_t{0}, size_t{1}, kHashBlockBytes, kHashBlockBytes + 1, 3 * kHashBlockBytes}) {
    const std::vector<std::byte> bytes = Noise(size);
    std::vector<Hash128> digests(HashBlocks(size));
    for (size_t i = digests.size(); i-- > 0;) {
      const size_t begin = i * kHashBlockBytes;
      digests[i] = HashBlock(std::span(bytes).subspan(begin, std::min(kHashBlockBytes, size - begin)));
    }
    EXPECT_EQ(CombineBlocks(digests, size), HashBytes(bytes)) << size;
  }
}

// The grammar in the header, spelt out: XXH3-128 of digests and length as one string.
TEST(ContentHashTest, IsTheHashOfItsDigests) {
  const std::vector<std::byte> bytes = Noise(kHashBlockBytes + 9);
  std::vector<std::byte> text;
  const auto append = [&text](uint64_t value) {
    for (int i = 0; i < 8; ++i) text.push_back(static_cast<std::byte>(value >> (8 * i)));
  };
  for (const auto& block :
       {std::span(bytes).first(kHashBlockBytes), std::span(bytes).subspan(kHashBlockBytes)}) {
    append(HashBlock(block).low);
    append(HashBlock(block).high);
  }
  append(bytes.size());
  EXPECT_EQ(HashBytes(bytes), HashBlock(text));
}

TEST(ContentHashTest, SeesEveryChange) {
  std::vector<std::byte> bytes = Noise(kHashBlockBytes + 100);
  const Hash128 before = HashBytes(bytes);
  bytes[kHashBlockBytes + 99] ^= std::byte{1};
  EXPECT_NE(HashBytes(bytes), before);
  bytes[kHashBlockBytes + 99] ^= std::byte{1};
  EXPECT_EQ(HashBytes(bytes), before);
  bytes.push_back(std::byte{0});
  EXPECT_NE(HashBytes(bytes), before);
}

}  // namespace
}  // namespace atl

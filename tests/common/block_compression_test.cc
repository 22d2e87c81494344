#include "common/block_compression.h"

#include <vector>

#include "common/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> Skewed(size_t size) {
  std::vector<std::byte> bytes(size);
  SplitMixGenerator random(7);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Uniform() < 0.9 ? 0 : random() & 15);
  return bytes;
}

TEST(BlockCompressionTest, GivesBackWhatItTookBlockAfterBlock) {
  BlockCompressor compressor;
  BlockDecompressor decompressor;
  for (const size_t size : {size_t{100}, size_t{4096}, size_t{1} << 20}) {
    const std::vector<std::byte> block = Skewed(size);
    std::vector<std::byte> packed(size);
    const size_t bytes = compressor.Compress(block, packed);
    ASSERT_GT(bytes, 0u);
    EXPECT_LT(bytes, size);
    std::vector<std::byte> back(size);
    ASSERT_TRUE(decompressor.Decompress(std::span(packed).first(bytes), back).ok());
    EXPECT_EQ(back, block);
  }
}

TEST(BlockCompressionTest, WhatDoesNotGetSmallerThanTheRoomIsNotPacked) {
  std::vector<std::byte> noise(10'000);
  SplitMixGenerator random(9);
  for (std::byte& byte : noise) byte = static_cast<std::byte>(random());
  std::vector<std::byte> packed(noise.size() - 1);
  EXPECT_EQ(BlockCompressor().Compress(noise, packed), 0u);
}

TEST(BlockCompressionTest, NoFrameWritesBeyondItsPlace) {
  const std::vector<std::byte> zeros(64 << 20);
  std::vector<std::byte> bomb(1 << 20);
  bomb.resize(BlockCompressor().Compress(zeros, bomb));
  ASSERT_GT(bomb.size(), 0u);
  std::vector<std::byte> place(2000, std::byte{0x55});
  BlockDecompressor decompressor;
  EXPECT_FALSE(decompressor.Decompress(bomb, std::span(place).first(1000)).ok());
  for (size_t i = 1000; i < place.size(); ++i) ASSERT_EQ(place[i], std::byte{0x55}) << i;
}

TEST(BlockCompressionTest, DamagedFramesAreRejectedOrGiveTheirSize) {
  const std::vector<std::byte> block = Skewed(3000);
  std::vector<std::byte> packed(block.size());
  packed.resize(BlockCompressor().Compress(block, packed));
  BlockDecompressor decompressor;
  std::vector<std::byte> back(block.size());
  SplitMixGenerator random(3);
  int rejected = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::byte> damaged = packed;
    damaged[random() % damaged.size()] ^= static_cast<std::byte>(1 + random() % 255);
    if (i % 3 == 0) damaged.resize(random() % damaged.size());
    rejected += decompressor.Decompress(damaged, back).ok() ? 0 : 1;
  }
  EXPECT_GT(rejected, 500);
  back.resize(2999);
  EXPECT_FALSE(decompressor.Decompress(packed, back).ok());
  back.resize(3001);
  EXPECT_THAT(std::string(decompressor.Decompress(packed, back).message()), HasSubstr("3001"));
}

}  // namespace
}  // namespace atl

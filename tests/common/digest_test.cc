#include "common/digest.h"

#include <set>
#include <utility>

#include "gtest/gtest.h"

namespace atl {
namespace {

// FIPS 180-4's examples.
constexpr char kOfNothing[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr char kOfAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(DigestTest, Sha256KnownAnswers) {
  EXPECT_EQ(Sha256Hex(""), kOfNothing);
  EXPECT_EQ(Sha256Hex("abc"), kOfAbc);
}

TEST(DigestTest, InPiecesAndReusable) {
  Sha256 hash;
  hash.Update("a");
  hash.Update("bc");
  EXPECT_EQ(hash.FinishHex(), kOfAbc);
  EXPECT_EQ(hash.FinishHex(), kOfNothing);
  hash.Update("abc");
  Sha256 moved = std::move(hash);
  EXPECT_EQ(moved.FinishHex(), kOfAbc);
}

TEST(DigestTest, RandomBytesDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 64; ++i) {
    const std::string bytes = RandomBytes(16);
    EXPECT_EQ(bytes.size(), 16u);
    EXPECT_TRUE(seen.insert(bytes).second);
    EXPECT_NE(RandomNonZero64(), 0u);
  }
  EXPECT_EQ(RandomBytes(0), "");
}

TEST(DigestTest, Hex) {
  EXPECT_EQ(ToHex(std::string_view("\x00\x7f\xff", 3)), "007fff");
  EXPECT_EQ(FromHex("007fFF"), std::string("\x00\x7f\xff", 3));
  EXPECT_EQ(FromHex(""), "");
  EXPECT_EQ(FromHex("0"), std::nullopt);
  EXPECT_EQ(FromHex("0x"), std::nullopt);
}

TEST(DigestTest, ConstantTimeEqual) {
  EXPECT_TRUE(ConstantTimeEqual("", ""));
  EXPECT_TRUE(ConstantTimeEqual("secret", "secret"));
  EXPECT_FALSE(ConstantTimeEqual("secret", "secreT"));
  EXPECT_FALSE(ConstantTimeEqual("secret", "secret "));
}

}  // namespace
}  // namespace atl

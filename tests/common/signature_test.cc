#include "common/signature.h"

#include "common/digest.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

// RFC 8032, section 7.1, test 2.
TEST(SignatureTest, IsTheOneOfRfc8032) {
  const auto key =
      SigningKey::FromSeed(*FromHex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"));
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ(ToHex(key->public_key()), "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
  EXPECT_EQ(ToHex(key->Sign("\x72")),
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
}

TEST(SignatureTest, OnlyTheSameMessageKeyAndSignaturePass) {
  const SigningKey key = SigningKey::Generate();
  const std::string signature = key.Sign("version 7");
  EXPECT_TRUE(VerifySignature(key.public_key(), "version 7", signature));
  EXPECT_FALSE(VerifySignature(key.public_key(), "version 8", signature));
  EXPECT_FALSE(VerifySignature(SigningKey::Generate().public_key(), "version 7", signature));
  for (const size_t byte : {size_t{0}, size_t{31}, size_t{32}, size_t{63}}) {
    std::string forged = signature;
    forged[byte] = static_cast<char>(forged[byte] ^ 1);
    EXPECT_FALSE(VerifySignature(key.public_key(), "version 7", forged)) << byte;
  }
}

TEST(SignatureTest, WrongSizesAreNoSignatures) {
  const SigningKey key = SigningKey::Generate();
  const std::string signature = key.Sign("x");
  EXPECT_FALSE(VerifySignature(key.public_key(), "x", ""));
  EXPECT_FALSE(VerifySignature(key.public_key(), "x", signature.substr(1)));
  EXPECT_FALSE(VerifySignature("", "x", signature));
  EXPECT_FALSE(VerifySignature(key.public_key() + "y", "x", signature));
  EXPECT_EQ(SigningKey::FromSeed("short").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(SignatureTest, AKeyComesBackFromItsSeed) {
  const SigningKey key = SigningKey::Generate();
  const auto again = SigningKey::FromSeed(key.seed());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->public_key(), key.public_key());
  EXPECT_NE(SigningKey::Generate().seed(), key.seed());
}

}  // namespace
}  // namespace atl

#include "worker/data/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atl {
namespace {

using ::testing::HasSubstr;

TEST(TokenizerTest, BytesComeBack) {
  std::string text = "caf\xC3\xA9";
  text += '\0';
  std::vector<TokenId> tokens;
  ByteTokenizer().Encode(text, tokens);
  EXPECT_EQ(tokens.size(), 6u);
  EXPECT_EQ(ByteTokenizer().Decode(tokens), text);
  EXPECT_EQ(ByteTokenizer().Decode(std::vector<TokenId>{'a', 300}), "a\xEF\xBF\xBD");
  EXPECT_THAT(std::string(MakeTokenizer("gpt2").status().message()), HasSubstr("Atoll has only 'bytes'"));
}

TEST(TokenizerTest, BytesAreCutBehindALineEnd) {
  EXPECT_EQ(ByteTokenizer().LastCut("ab\ncd\ne"), 6u);
  EXPECT_EQ(ByteTokenizer().LastCut("ab\ncd\n"), 3u) << "behind a cut there is text";
  EXPECT_EQ(ByteTokenizer().LastCut("abcd"), 0u);
  EXPECT_EQ(ByteTokenizer().LastCut(""), 0u);
  std::vector<TokenId> tokens;
  ByteTokenizer().EncodePart("abc", 2, tokens);
  EXPECT_EQ(tokens, (std::vector<TokenId>{'a', 'b'}));
}

}  // namespace
}  // namespace atl

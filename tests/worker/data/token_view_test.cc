#include "worker/data/token_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace atl {
namespace {

using ::testing::ElementsAre;

TEST(TokenWidthTest, IsTheNarrowestThatHasTheVocabulary) {
  EXPECT_EQ(WidthFor(256), TokenWidth::kTwoBytes);
  EXPECT_EQ(WidthFor(65536), TokenWidth::kTwoBytes) << "token 65535 is the last";
  EXPECT_EQ(WidthFor(65537), TokenWidth::kFourBytes);
  EXPECT_EQ(WidthFor(128256), TokenWidth::kFourBytes) << "Llama-3";
}

TEST(TokenViewTest, TokensComeBackInEitherWidth) {
  const std::vector<TokenId> tokens = {0, 7, 65535, 300};
  for (const TokenWidth width : {TokenWidth::kTwoBytes, TokenWidth::kFourBytes}) {
    std::vector<std::byte> bytes;
    PackTokens(tokens, width, bytes);
    ASSERT_EQ(bytes.size(), tokens.size() * BytesPerToken(width));
    std::vector<TokenId> back(tokens.size());
    UnpackTokens(bytes, width, back);
    EXPECT_EQ(back, tokens);
    const TokenView view(bytes, width);
    EXPECT_EQ(view.size(), 4u);
    EXPECT_EQ(view.Tokens(), tokens);
    EXPECT_THAT(view.subspan(1, 2).Tokens(), ElementsAre(7u, 65535u));
    EXPECT_EQ(view.first(1).bytes().size(), BytesPerToken(width));
  }
  std::vector<std::byte> wide;
  PackTokens(std::vector<TokenId>{128000}, TokenWidth::kFourBytes, wide);
  EXPECT_THAT(TokenView(wide, TokenWidth::kFourBytes).Tokens(), ElementsAre(128000u));
}

TEST(TokenViewTest, NothingIsNothing) {
  EXPECT_TRUE(TokenView().empty());
  EXPECT_EQ(TokenView().size(), 0u);
  std::vector<std::byte> bytes(3);
  PackTokens({}, TokenWidth::kTwoBytes, bytes);
  EXPECT_TRUE(bytes.empty());
}

}  // namespace
}  // namespace atl

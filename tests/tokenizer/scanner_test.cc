#include "tokenizer/scanner.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Pieces(Pattern pattern, std::string_view text) {
  Scanner scanner(pattern, text);
  std::vector<std::string> pieces;
  for (std::string_view piece; scanner.Next(piece);) pieces.emplace_back(piece);
  return pieces;
}

TEST(ScannerTest, Gpt2LeavesTheLastSpaceToTheNextPiece) {
  EXPECT_THAT(Pieces(Pattern::kGpt2, "it's  a\n\n12 x!? "),
              ElementsAre("it", "'s", " ", " a", "\n", "\n", "12", " x", "!?", " "));
  EXPECT_THAT(Pieces(Pattern::kGpt2, "IT'S"), ElementsAre("IT", "'", "S"));
}

TEST(ScannerTest, Cl100kTakesASignIntoTheWordAndThreeDigits) {
  EXPECT_THAT(Pieces(Pattern::kCl100k, "(foo) 12345IT'S\n  x"),
              ElementsAre("(foo", ")", " ", "123", "45", "IT", "'S", "\n", " ", " x"));
}

TEST(ScannerTest, TiktokensCl100kKeepsTheLastWhiteSpaceTogether) {
  EXPECT_THAT(Pieces(Pattern::kCl100kTiktoken, "a\n  "), ElementsAre("a", "\n  "));
  EXPECT_THAT(Pieces(Pattern::kCl100k, "a\n  "), ElementsAre("a", "\n", "  "));
}

TEST(ScannerTest, Qwen2TakesDigitsAlone) {
  EXPECT_THAT(Pieces(Pattern::kQwen2, "a12 3"), ElementsAre("a", "1", "2", " ", "3"));
}

TEST(ScannerTest, O200kEndsAWordWhereCapitalsFollowSmallLetters) {
  EXPECT_THAT(Pieces(Pattern::kO200k, "CamelCase HTTPServer it's"),
              ElementsAre("Camel", "Case", " HTTPServer", " it's"));
  // U+00AA is a capital and a small letter at once: capitals give back up to it.
  EXPECT_THAT(Pieces(Pattern::kO200k, "\u00aaAB"), ElementsAre("\u00aa", "AB"));
  EXPECT_THAT(Pieces(Pattern::kO200k, "A\u00aaB\u00aaCD"), ElementsAre("A\u00aaB\u00aa", "CD"));
  EXPECT_THAT(Pieces(Pattern::kO200k, "//\n/x"), ElementsAre("//\n/", "x"));
}

TEST(ScannerTest, SmolLmEndsThePatternAtADigit) {
  EXPECT_THAT(Pieces(Pattern::kSmolLm, "a  12 b"), ElementsAre("a", "  ", "1", "2", " b"));
}

TEST(ScannerTest, InvalidBytesAreSigns) {
  EXPECT_THAT(Pieces(Pattern::kGpt2, "a\xff\xc3 b"), ElementsAre("a", "\xff\xc3", " b"));
}

TEST(ScannerTest, PiecesCoverTheText) {
  const std::string text = "A's 1\t\u00a0\u2003x\r\n\r\n \u0301e\u0301 \xf0\x9f'LL ///\n";
  for (const Pattern pattern : {Pattern::kGpt2, Pattern::kCl100k, Pattern::kCl100kTiktoken, Pattern::kQwen2,
                                Pattern::kO200k, Pattern::kSmolLm}) {
    for (size_t end = 0; end <= text.size(); ++end) {
      std::string joined;
      for (const std::string& piece : Pieces(pattern, std::string_view(text).substr(0, end))) joined += piece;
      EXPECT_EQ(joined, text.substr(0, end));
    }
  }
}

}  // namespace
}  // namespace atl

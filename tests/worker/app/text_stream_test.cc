#include "worker/app/text_stream.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace atl {
namespace {

using ::testing::ElementsAre;

/// What is shown after each byte, and at the end.
std::vector<std::string> Shown(const std::string& bytes, const std::vector<std::string>& stops = {}) {
  const ByteTokenizer tokenizer;
  TextStream stream(tokenizer, stops);
  std::vector<std::string> shown;
  for (const char byte : bytes) shown.push_back(stream.Add(static_cast<unsigned char>(byte)));
  shown.push_back(stream.Finish());
  return shown;
}

std::string Joined(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += part;
  return all;
}

TEST(TextStreamTest, ShowsEachCharacterWhenItIsComplete) {
  EXPECT_THAT(Shown("ab"), ElementsAre("a", "b", ""));
  EXPECT_THAT(Shown("\xC3\xA9x"), ElementsAre("", "\xC3\xA9", "x", ""));
  EXPECT_THAT(Shown("\xF0\x9F\x98\x80!"), ElementsAre("", "", "", "\xF0\x9F\x98\x80", "!", ""));
}

TEST(TextStreamTest, BytesThatAreNoCharacterAreShownToo) {
  EXPECT_THAT(Shown("\x80"
                    "a"),
              ElementsAre("\x80", "a", ""));
  EXPECT_THAT(Shown("\xE2\x82"), ElementsAre("", "", "\xE2\x82")) << "cut at the end";
  EXPECT_THAT(Shown("\xE2"
                    "a"),
              ElementsAre("",
                          "\xE2"
                          "a",
                          ""));
}

TEST(TextStreamTest, EndsBeforeAStopText) {
  EXPECT_THAT(Shown("one\n\ntwo", {"\n\n"}), ElementsAre("o", "n", "e", "", "", "", "", "", ""));
  EXPECT_THAT(Shown("a\nb", {"\n\n"}), ElementsAre("a", "", "\nb", "")) << "only its beginning came";
  EXPECT_THAT(Shown("ab", {"bc"}), ElementsAre("a", "", "b")) << "the text ended";
}

TEST(TextStreamTest, TheEarliestOfSeveralStopTextsCounts) {
  EXPECT_EQ(Joined(Shown("abcdef", {"ef", "cd"})), "ab");
  EXPECT_EQ(Joined(Shown("aab", {"aab", "ab"})), "");
  EXPECT_EQ(Joined(Shown("abab-abac.", {"abac"})), "abab-");
}

TEST(TextStreamTest, SaysThatItStopped) {
  const ByteTokenizer tokenizer;
  TextStream stream(tokenizer, {"b"});
  stream.Add('a');
  EXPECT_FALSE(stream.stopped());
  stream.Add('b');
  EXPECT_TRUE(stream.stopped());
}

}  // namespace
}  // namespace atl

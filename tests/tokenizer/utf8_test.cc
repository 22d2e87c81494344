#include "tokenizer/utf8.h"

#include "gtest/gtest.h"
#include "tokenizer/nfc.h"

namespace atl {
namespace {

std::string Replaced(std::string_view text) {
  std::string out;
  AppendReplaced(text, out);
  return out;
}

std::string Nfc(std::string_view text) {
  std::string out;
  ToNfc(text, out);
  return out;
}

TEST(Utf8Test, EachMaximalInvalidPartBecomesOneCharacter) {
  EXPECT_EQ(Replaced("a\xff\xfe z"), "a\ufffd\ufffd z");
  EXPECT_EQ(Replaced("\xe2\x82"), "\ufffd");
  EXPECT_EQ(Replaced("\xe2\x28\xa1"), "\ufffd(\ufffd");
  EXPECT_EQ(Replaced("\xf0\x9f\x98\xff"), "\ufffd\ufffd");
  EXPECT_EQ(Replaced("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");            // a surrogate
  EXPECT_EQ(Replaced("\xf4\x90\x80\x80"), "\ufffd\ufffd\ufffd\ufffd");  // above U+10FFFF
  EXPECT_EQ(Replaced("\xc0\xaf"), "\ufffd\ufffd");                      // longer than needed
}

TEST(Utf8Test, KnowsValidText) {
  EXPECT_TRUE(IsUtf8("plain text, long enough for words; \u00e9 \u4e2d \U0001f600"));
  EXPECT_FALSE(IsUtf8("plain text, long enough \xc3"));
}

TEST(Utf8Test, CodePointsSurvive) {
  for (uint32_t point = 0; point < 0x110000; point += point < 0x3000 ? 1 : 97) {
    if (point >= 0xd800 && point < 0xe000) continue;
    std::string text;
    AppendUtf8(point, text);
    const CodePoint back = DecodeUtf8(text.data(), text.data() + text.size());
    ASSERT_TRUE(back.valid);
    ASSERT_EQ(back.value, point);
    ASSERT_EQ(back.bytes, text.size());
  }
}

TEST(NfcTest, ComposesAndOrders) {
  EXPECT_EQ(Nfc("e\u0301"), "\u00e9");
  EXPECT_EQ(Nfc("x e\u0301 y"), "x \u00e9 y");
  EXPECT_EQ(Nfc("q\u0307\u0323"), "q\u0323\u0307");
  EXPECT_EQ(Nfc("o\u0308\u0323"), "\u1ecd\u0308");
  EXPECT_EQ(Nfc("\u1100\u1161\u11a8"), "\uac01");
  EXPECT_EQ(Nfc("\u2126\u212b"), "\u03a9\u00c5");
  EXPECT_EQ(Nfc("\u0958"), "\u0915\u093c");  // excluded from composition
  EXPECT_EQ(Nfc("\xff"
                "\u0301"),
            "\xff"
            "\u0301");
}

TEST(NfcTest, MostTextNeedsNoChange) {
  EXPECT_FALSE(NeedsNfc("caf\u00e9 \u4e2d\u6587 \ud55c\uad6d \u0416"));
  EXPECT_TRUE(NeedsNfc("e\u0301"));
}

}  // namespace
}  // namespace atl
